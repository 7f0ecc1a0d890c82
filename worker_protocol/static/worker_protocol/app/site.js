// What the page asks of the site over HTTP. Every refusal is a SiteRefusal with the site's own code.

const TIMEOUT_MS = 20_000;

export class SiteRefusal extends Error {
  constructor(code, message = "") {
    super(message);
    this.name = "SiteRefusal";
    this.code = code; // one of the API's, or "offline", "unreachable", "not_signed_in"
  }
}

// {account: {email, csrf_token} or null, own_windows, hours_a_night, nights_a_week, class_labels}.
export const facts = () => answer("/device/facts/");

// What so many hours of a device of this class would bring its owner.
export const estimate = (deviceClass, hours) =>
  answer(`/api/estimates/device/?${new URLSearchParams({ device_class: deviceClass, hours })}`);

// A one-time code of the account that is logged in on this device.
export async function codeCreate(account) {
  const headers = { "X-CSRFToken": account.csrf_token };
  return (await answer("/api/pairing-codes/", { method: "POST", headers })).code;
}

// The id of the device that this one now is. `body` as POST /api/devices/pair/ takes it.
export async function devicePair(body) {
  const sent = {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    // Whoever is logged in here has no part in it: the code says whose device this becomes.
    credentials: "omit",
  };
  return (await answer("/api/devices/pair/", sent)).device_id;
}

async function answer(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { signal: AbortSignal.timeout(TIMEOUT_MS), ...options });
  } catch (error) {
    throw new SiteRefusal(navigator.onLine ? "unreachable" : "offline", error.message);
  }
  const body = await response.json().catch(() => null);
  if (response.ok && body !== null) return body;
  if (response.status === 401 || response.status === 403) throw new SiteRefusal("not_signed_in", body?.message);
  throw new SiteRefusal(body?.code ?? "unreachable", body?.message ?? `The site answered ${response.status}.`);
}
