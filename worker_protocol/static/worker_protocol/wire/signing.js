// How a device proves who it is: an Ed25519 signature (RFC 8032) over the server's nonce and its own id.

// Names the protocol and the purpose, so that a signature made here means nothing anywhere else.
const DOMAIN = new TextEncoder().encode("nightshift.v1 auth\n");

// What a device signs: the domain, the 32 bytes of the nonce, the 16 bytes of its id.
export function signingBytes({ nonce, deviceId }) {
  const tail = fromHex(nonce + deviceId.replaceAll("-", ""));
  const bytes = new Uint8Array(DOMAIN.length + tail.length);
  bytes.set(DOMAIN);
  bytes.set(tail, DOMAIN.length);
  return bytes;
}

// The signature by a private Ed25519 CryptoKey, as 128 hex digits.
export async function sign(privateKey, bytes) {
  return toHex(new Uint8Array(await crypto.subtle.sign("Ed25519", privateKey, bytes)));
}

export function toHex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function fromHex(text) {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}
