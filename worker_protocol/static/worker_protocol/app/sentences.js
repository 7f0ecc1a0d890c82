// What the app says to its owner when something is refused, ends or keeps it from work: `what` has happened, and
// `next`, what to do. `act` names a button that does it: "retry", "pair", "reload" or "log_in".
//
// Families: `error` and `close` of the socket, `blocked`, `handback` and `revoke` reasons (docs/protocol.md), `pairing`
// refusals of the site, and `local`, what the app finds by itself. Numbers come from the terms in force.

import { clockTime, percent } from "./words.js";

const NOTHING_TO_DO = "Nothing to do: it goes on by itself.";
const OWN_FAULT = "It tries again by itself. If this stays, close the app and open it again while on line.";

const ERRORS = {
  binary_frame: () => ({ what: "The site did not understand this app.", next: OWN_FAULT }),
  frame_too_big: () => ({ what: "This app sent the site more than it takes at once.", next: OWN_FAULT }),
  bad_json: () => ({ what: "The site could not read what this app sent.", next: OWN_FAULT }),
  unknown_type: () => ({
    what: "The site speaks another version of the protocol than this app.",
    next: "Close the app and open it again while on line, to get its newest version.",
    act: "reload",
  }),
  bad_field: () => ({ what: "The site refused one message of this app.", next: OWN_FAULT }),
  wrong_state: () => ({ what: "The app and the site lost step with each other.", next: OWN_FAULT }),
  auth_failed: () => ({
    what: "The site does not know this device’s key.",
    next: "Pair it again with a new code from the Devices page.",
    act: "pair",
  }),
  device_removed: () => ({
    what: "This device was removed on the Devices page.",
    next: "To let it work again, pair it with a new code.",
    act: "pair",
  }),
  superseded: () => ({
    what: "This device is at work in another tab or window.",
    next: "Close this one, or stop the other and start here.",
    act: "retry",
  }),
  too_fast: () => ({ what: "This app sent messages faster than the site takes them.", next: OWN_FAULT }),
  auth_timeout: () => ({ what: "The connection was too slow to log in.", next: NOTHING_TO_DO }),
  silent: () => ({
    what: "The site heard nothing from this device for half a minute.",
    next: "It connects again by itself. If it happens often, keep the app on the screen and the phone near the Wi-Fi.",
  }),
  slow_reader: () => ({ what: "The connection is too slow for the site’s messages.", next: NOTHING_TO_DO }),
  busy: () => ({ what: "The site is busy.", next: "It asks again in a second." }),
  internal: () => ({ what: "The site had a fault of its own; it never counts against you.", next: NOTHING_TO_DO }),
};

// A browser may show the close code alone.
const CLOSE_CODES = {
  4000: "unknown_type",
  4001: "bad_field",
  4002: "wrong_state",
  4003: "auth_failed",
  4004: "device_removed",
  4005: "superseded",
  4006: "too_fast",
  4007: "auth_timeout",
  4008: "silent",
  4009: "slow_reader",
  4010: "binary_frame",
  4011: "frame_too_big",
  4012: "bad_json",
  4013: "busy",
  4014: "internal",
};
const RESTARTS = () => ({ what: "The site restarts.", next: "The app connects again by itself in a moment." });
const CLOSES = {
  1001: RESTARTS,
  1012: RESTARTS,
  1006: () => ({ what: "The connection broke.", next: "The app connects again by itself." }),
};

const BLOCKED = {
  paused: () => ({ what: "You have paused this device.", next: "Resume it on the Devices page.", act: "devices" }),
  removed: ERRORS.device_removed,
  outside_window: ({ terms }) => ({
    what: "It is outside your idle windows.",
    next: terms?.opens_ms
      ? `It starts by itself at ${clockTime(terms.opens_ms)}, if the app stays open.`
      : "Set windows on the Devices page.",
  }),
  battery_low: ({ terms }) => ({
    what: terms ? `The battery is below your floor of ${percent(terms.battery_floor_percent)}.` : "The battery is low.",
    next: terms ? `It goes on at ${percent(terms.battery_resume_percent)}.` : "Put the device on its charger.",
  }),
  not_charging: () => ({ what: "The device is not charging.", next: "Plug it in, and it goes on." }),
  not_on_wifi: () => ({ what: "The device is not on Wi-Fi.", next: "It goes on as soon as it is." }),
  too_hot: () => ({
    what: "The device is too warm and has slowed down.",
    next: "It goes on once it has cooled. Take it out of its case and lay it on something hard and cool.",
  }),
  hidden: () => ({
    what: "The app is not on the screen.",
    next: "Browsers stop what is not seen: bring the app to the front, and it goes on.",
  }),
  stopped: () => ({ what: "You have stopped it.", next: "Press “Start again” when you like." }),
  self_test_failed: () => LOCAL.self_test_failed({}),
  gpu_lost: () => ({
    what: "The browser has lost its GPU.",
    next: "The app rests a moment, then opens it anew. If this repeats, restart the browser.",
  }),
};

const HANDBACKS = {
  shutdown: () => ({ what: "It stopped before the piece of work was done.", next: "Another device takes it over." }),
  blocked: () => ({
    what: "The piece of work was handed back, because the device may not work now.",
    next: "It takes another as soon as it may.",
  }),
  busy: () => ({ what: "A second piece of work was sent back.", next: NOTHING_TO_DO }),
  too_big: () => ({
    what: "A job needed more memory than this browser gives a page.",
    next: "It waits for smaller ones. Closing other tabs helps.",
  }),
  data_unavailable: () => ({
    what: "The data of a piece of work did not arrive.",
    next: "It takes another. If it happens often, look at the Wi-Fi.",
  }),
  bad_program: () => ({
    what: "A job’s program is newer than this app, or more than this browser can run.",
    next: "It waits for other jobs. Close the app and open it again while on line to get its newest version.",
  }),
  out_of_memory: () => ({
    what: "The memory ran out in the middle of a piece of work.",
    next: "Close other tabs and apps; it takes another by itself.",
  }),
  device_lost: () => ({
    what: "The browser lost its GPU in the middle of a piece of work.",
    next: "The app opens it anew by itself. If this repeats, restart the browser.",
  }),
  error: () => ({ what: "A piece of work failed on this device.", next: "It takes another by itself." }),
};

const REVOKES = {
  expired: () => ({
    what: "A piece of work took longer than it may, and went to another device.",
    next: "It takes another by itself.",
  }),
  cancelled: () => ({ what: "The buyer no longer needs a piece of work.", next: "It takes another by itself." }),
  blocked: HANDBACKS.blocked,
  superseded: () => ({ what: "Another device was quicker with this piece of work.", next: NOTHING_TO_DO }),
  unknown: () => ({ what: "The site no longer knows a piece of work.", next: "It takes another by itself." }),
};

// Of results, by the code of their `ack`.
const BAD_RESULT = () => ({
  what: "The site refused a result: its figures cannot be right.",
  next: "It takes another piece. If it happens again, update the browser; the check of the GPU runs anew after that.",
});
const REFUSED = {
  late: () => ({ what: "A result came after another device’s for the same work.", next: "It takes another by itself." }),
  cancelled: REVOKES.cancelled,
  expired: REVOKES.expired,
  blocked: HANDBACKS.blocked,
  steps_wrong: BAD_RESULT,
  losses_bad: BAD_RESULT,
  delta_norm: BAD_RESULT,
};

const NEW_CODE = "Make a new one: press “Pair a device” on the Devices page.";
const PAIRING = {
  pairing_code_wrong: () => ({
    what: "This pairing code is not right.",
    next: "Compare it with the one on the Devices page, letter by letter, and try again.",
  }),
  pairing_code_expired: () => ({ what: "This pairing code has expired: codes live for ten minutes.", next: NEW_CODE }),
  pairing_code_used: () => ({ what: "This pairing code has been used: each pairs one device.", next: NEW_CODE }),
  too_many_pairing_attempts: () => ({
    what: "Too many wrong codes came from this network.",
    next: "Wait ten minutes, then try again with a new code.",
  }),
  device_already_paired: () => ({
    what: "This device’s key is paired already.",
    next: "Start anew: the app makes a fresh key.",
    act: "pair",
  }),
  limit_reached: ({ message }) => ({
    what: message ?? "You have as many devices or codes as one person may.",
    next: "Remove a device that you no longer use, or let unused codes expire.",
  }),
  invalid_name: ({ message }) => ({ what: message ?? "This name cannot be used.", next: "Choose another name." }),
  invalid_device_facts: () => ({
    what: "The site does not know this kind of device.",
    next: "Load the app anew, to get its newest version.",
    act: "reload",
  }),
  invalid_public_key: () => ({
    what: "The site does not take this browser’s key.",
    next: "Update the browser, then try again.",
  }),
  invalid_input: ({ message }) => ({ what: message ?? "The site refused an entry.", next: "Correct it and try again." }),
  not_signed_in: () => ({ what: "You are no longer logged in.", next: "Log in again, or use a code.", act: "log_in" }),
};

const UPDATE_BROWSER = "Use Safari on iOS 26 or later, or a current Chrome on Android 12 or later.";
const INSECURE = () => ({
  what: "This page was not opened over a secure connection.",
  next: "Open it at its https:// address; browsers give keys and the GPU to nothing else.",
});
const NO_GPU = () => ({
  what: "The browser gives this page no access to the GPU.",
  next: "Close other tabs, leave power-saving mode, or restart the browser; then check again.",
});
const LOCAL = {
  insecure: INSECURE,
  crypto: INSECURE,
  webgpu: () => ({ what: "This browser has no WebGPU, with which the work is computed.", next: UPDATE_BROWSER }),
  gpu: NO_GPU,
  no_gpu: NO_GPU,
  ed25519: () => ({ what: "This browser cannot make the kind of key that devices have.", next: UPDATE_BROWSER }),
  indexeddb: () => ({
    what: "This browser keeps no data for the page, as in a private tab.",
    next: "Open the page in a normal tab.",
  }),
  worker: () => ({ what: "This browser cannot run work beside a page.", next: UPDATE_BROWSER }),
  locks: () => ({ what: "This browser cannot tell whether two tabs are one device.", next: UPDATE_BROWSER }),
  websocket: () => ({ what: "This browser has no WebSockets, over which the work comes.", next: UPDATE_BROWSER }),
  no_wake_lock: () => ({
    what: "This browser cannot keep the screen on.",
    next: "Set the phone’s screen or auto-lock to “Never” for the night, or update the browser.",
  }),
  wake_lock_refused: () => ({
    what: "The phone did not let the app keep the screen on.",
    next: "Leave power-saving mode and tap the screen once.",
  }),
  blind: () => ({
    what: "This browser tells no app about battery or heat.",
    next: "So put it on the charger yourself. The app watches its own speed, and rests when heat slows it down.",
  }),
  camera_refused: () => ({
    what: "The browser may not use the camera.",
    next: "Allow it in the address bar or the phone’s settings, scan with the camera app, or type the code.",
  }),
  camera_missing: () => ({ what: "No camera was found.", next: "Type the code." }),
  not_a_code: () => ({
    what: "This is not a pairing code.",
    next: "Codes have eight letters and digits, like ABCD-EFGH, and are on the Devices page.",
  }),
  clock_wrong: ({ clockSkewMs }) => ({
    what: `This device’s clock is wrong by ${skewWords(clockSkewMs)}.`,
    next: "Set date and time to automatic. Your windows follow the site’s clock, so work goes on.",
  }),
  storage_full: () => ({
    what: "The storage that the browser gives this app is full.",
    next: "Free some space on the device. Until then it fetches more than it would need to.",
  }),
  storage_not_persistent: () => ({
    what: "The browser may delete this app’s key when space runs out or the app is not used for a week.",
    next: "Add the app to the home screen. If the key is lost, the device is paired again; earnings stay yours.",
  }),
  offline: () => ({ what: "There is no network.", next: "The app connects by itself when there is one again." }),
  unreachable: () => ({
    what: "The site does not answer: it is down, or its certificate is not valid.",
    next: "Open the site in the browser, which says what is wrong. The app keeps trying.",
  }),
  connection_lost: () => ({ what: "The connection broke.", next: "The app connects again by itself." }),
  no_socket: () => ({
    what: "The site answers, but the connection for devices does not open.",
    next: "This network may block WebSockets: try another one. The app keeps trying.",
  }),
  other_tab: ERRORS.superseded,
  not_paired: () => ({ what: "This browser is not paired.", next: "Pair it with a code.", act: "pair" }),
  self_test_failed: ({ failed, message }) => ({
    what: "This browser computes wrong results, so the device gets no work.",
    next: `${failedWords(failed) || (message ?? "")} Update the browser or the system; the check runs again after that.`.trim(),
  }),
  self_test_unavailable: ({ message }) => ({
    what: "The check of the GPU could not be run.",
    next: message || "Close other tabs, restart the browser and try again.",
    act: "retry",
  }),
  no_storage: ({ message }) => ({
    what: "The browser gives this app no storage.",
    next: message || "Open it in a normal tab, not a private one, and free some space on the device.",
  }),
  error: ({ message }) => ({
    what: "The part of the app that works has failed.",
    next: message || "Start again. If this repeats, close the app and open it again.",
    act: "retry",
  }),
  working: () => ({ what: "The device is at work.", next: "Stop it first, then try again." }),
  worker_died: () => ({
    what: "The part of the app that works has stopped.",
    next: "Start again. If this repeats, close other tabs and apps.",
    act: "retry",
  }),
  stop_forced: () => ({
    what: "It did not stop by itself within a second, so it was ended.",
    next: "What it was working on goes to another device.",
  }),
};

export const SENTENCES = {
  error: ERRORS,
  close: CLOSES,
  blocked: BLOCKED,
  handback: HANDBACKS,
  revoke: REVOKES,
  refused: REFUSED,
  pairing: PAIRING,
  local: LOCAL,
};

// {what, next, act} for a code of one of the families; a code that is new to this version is named as it is.
export function sentenceFor(family, code, facts = {}) {
  const words = SENTENCES[family]?.[family === "close" ? Number(code) : code];
  if (words) return { act: null, ...words(facts) };
  if (family === "refused") return { act: null, ...BAD_RESULT() };
  if (family === "close" && code in CLOSE_CODES) return sentenceFor("error", CLOSE_CODES[code], facts);
  return {
    what: facts.message || `The site says “${code}”, which is new to this version of the app.`,
    next: "Close the app and open it again while on line, to get its newest version.",
    act: "reload",
  };
}

// For errors of the worker, which are of the app's own finding or the socket's.
export function anySentenceFor(code, facts = {}) {
  return sentenceFor(code in LOCAL ? "local" : "error", code, facts);
}

function failedWords(failed) {
  return failed?.length ? `Wrong: ${failed.slice(0, 3).join(", ")}${failed.length > 3 ? " and more" : ""}.` : "";
}

function skewWords(skewMs) {
  const minutes = Math.round(Math.abs(skewMs) / 60_000);
  if (minutes < 90) return `${minutes} minutes`;
  return `${Math.round(minutes / 60)} hours`;
}
