// Who this device is: an Ed25519 key pair whose private half never leaves the browser, and its pairing. The page uses
// this when it pairs, the worker when it logs in.

import { toHex } from "../wire/signing.js";
import { recordDelete, recordRead, recordWrite } from "./database.js";

const STORE = "identity";
const KEY = "device";

// A new key pair, {keys, publicKey}: `keys` a CryptoKeyPair that cannot be exported, `publicKey` 64 hex digits for
// `POST /api/devices/pair/`. Nothing is kept until identitySave. Throws where the browser has no Ed25519.
export async function identityCreate() {
  const keys = await crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"]);
  const publicKey = toHex(new Uint8Array(await crypto.subtle.exportKey("raw", keys.publicKey)));
  return { keys, publicKey };
}

// Keep the identity once the server has answered with the device's id. `server` is the site's origin.
export async function identitySave({ keys, deviceId, server, name }) {
  await recordWrite(STORE, KEY, { keys, deviceId, server, name });
}

// {keys, deviceId, server, name}, or null before this browser is paired.
export async function identityLoad() {
  return recordRead(STORE, KEY);
}

export async function identityForget() {
  await recordDelete(STORE, KEY);
}
