// Pairing codes as they come: in an address's fragment, in a QR code, or typed. Pure.

// As accounts/services/pairing.py makes them: nothing that reads like something else.
const CODE = /^[ABCDEFGHJKMNPQRSTUVWXYZ2-9]{8}$/;

// "abcd efgh" -> "ABCD-EFGH"; null if it cannot be a code.
export function codeFromText(text) {
  const letters = text.replace(/[\s-]/g, "").toUpperCase();
  return CODE.test(letters) ? `${letters.slice(0, 4)}-${letters.slice(4)}` : null;
}

// "#code=ABCD-EFGH" -> "ABCD-EFGH"; null if there is none.
export function codeFromFragment(fragment) {
  const given = new URLSearchParams(fragment.replace(/^#/, "")).get("code");
  return given === null ? null : codeFromText(given);
}

// What a camera has read: the address of this site's app with a code, or a code alone; null for anything else.
// A code for another site is of no use here, and must not be sent to this one.
export function codeFromScan(text, origin) {
  const url = URL.parse(text);
  if (url === null || url.protocol === "javascript:") return codeFromText(text);
  return url.origin === origin ? codeFromFragment(url.hash) : null;
}
