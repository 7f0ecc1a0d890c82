// Every message of `nightshift.v1`, as plain objects {type, ...fields} named as on the wire. docs/protocol.md
// explains them one by one. A reader passes over fields that it does not know, and fills in those that may be
// left out.

import { BadField, BadJson, BinaryFrame, FrameTooBig, UnknownType } from "./errors.js";
import { MAX_CACHED, MAX_FRAME_BYTES, MAX_HELD_LEASES, MAX_SHORT_CHARACTERS, MAX_STEPS } from "./limits.js";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const LARGEST_FINITE = 3.4e38;

export const HANDBACK_REASONS = [
  "shutdown", "blocked", "busy", "too_big", "data_unavailable", "bad_program", "out_of_memory", "device_lost",
  "error",
];

// ---- kinds of values: each throws BadField, naming the path, or returns

const characters = (text) => [...text].length;

function text(maxCharacters) {
  return (value, path) => {
    if (typeof value !== "string") throw wrong(path, "must be text");
    // Code units are at least as many as characters, so most texts need no counting.
    if (value.length > maxCharacters && characters(value) > maxCharacters) {
      throw wrong(path, `has more than ${maxCharacters} characters`);
    }
  };
}

function matching(pattern, what) {
  return (value, path) => {
    if (typeof value !== "string" || !pattern.test(value)) throw wrong(path, `must be ${what}`);
  };
}

const hex = (bytes) => matching(new RegExp(`^[0-9a-f]{${2 * bytes}}$`), `${2 * bytes} lower-case hex digits`);

function whole(least, most) {
  return (value, path) => {
    if (!Number.isSafeInteger(value) || value < least || value > most) {
      throw wrong(path, `must be a whole number from ${least} to ${most}`);
    }
  };
}

function number(least, most) {
  return (value, path) => {
    if (typeof value !== "number" || !(value >= least && value <= most)) {
      throw wrong(path, `must be a number from ${least} to ${most}`);
    }
  };
}

function oneOf(...choices) {
  return (value, path) => {
    if (!choices.includes(value)) throw wrong(path, `must be one of ${choices.join(", ")}`);
  };
}

function flag(value, path) {
  if (typeof value !== "boolean") throw wrong(path, "must be true or false");
}

function list(check, maxItems) {
  return (value, path) => {
    if (!Array.isArray(value)) throw wrong(path, "must be a list");
    if (value.length > maxItems) throw wrong(path, `has more than ${maxItems} items`);
    value.forEach((item, place) => check(item, `${path}[${place}]`));
  };
}

function orNull(check) {
  return (value, path) => {
    if (value !== null) check(value, path);
  };
}

const id = matching(UUID, "a UUID in lower case");
const hash = hex(32);
const count = whole(0, Number.MAX_SAFE_INTEGER);
const short = text(MAX_SHORT_CHARACTERS);
const url = text(2_000);
const finite = number(-LARGEST_FINITE, LARGEST_FINITE);

// ---- the messages: {field: check}, or {field: [check, value when left out]}

const BLOB = { sha256: hash, size_bytes: count, url };

function blob(value, path) {
  if (!isRecord(value)) throw wrong(path, "must be an object");
  for (const [field, check] of Object.entries(BLOB)) {
    if (value[field] === undefined) throw missing(field);
    check(value[field], `${path}.${field}`);
  }
}

const FROM_DEVICE = {
  hello: {
    device_id: id,
    agent: short,
    memory_bytes: [count, 0],
    max_buffer_bytes: [count, 0],
    leases: [list(id, MAX_HELD_LEASES), []],
    cached: [list(hash, MAX_CACHED), []],
  },
  auth: { signature: hex(64) },
  status: {
    battery_percent: [orNull(number(0, 100)), null],
    charging: [orNull(flag), null],
    network: [orNull(oneOf("wifi", "ethernet", "cellular", "none")), null],
    temperature_celsius: [orNull(number(-60, 150)), null],
    thermal: [orNull(oneOf("nominal", "fair", "serious", "critical")), null],
  },
  ready: {},
  progress: { lease_id: id, step: whole(0, MAX_STEPS) },
  result: {
    lease_id: id,
    delta_sha256: hash,
    delta_bytes: count,
    gpu_us: count,
    steps: whole(0, MAX_STEPS),
    losses: list(finite, MAX_STEPS),
  },
  handback: { lease_id: id, reason: oneOf(...HANDBACK_REASONS), detail: [short, ""] },
};

const FROM_SERVER = {
  challenge: { nonce: hex(32) },
  welcome: {
    server_time_ms: count,
    heartbeat_ms: whole(1_000, 600_000),
    max_frame_bytes: count,
    blocked: [orNull(short), null],
  },
  terms: {
    opens_ms: orNull(count),
    closes_ms: orNull(count),
    battery_floor_percent: whole(0, 100),
    battery_resume_percent: whole(0, 100),
    charging_only: flag,
    wifi_only: flag,
    too_hot_celsius: whole(-60, 150),
    microusd_per_gpu_hour: count,
    earned_microusd: count,
  },
  lease: {
    lease_id: id,
    program: blob,
    params: blob,
    slice: blob,
    steps: whole(1, MAX_STEPS),
    batch_size: whole(1, 2 ** 31 - 1),
    seed: count,
    learning_rate: finite,
    time_left_ms: count,
    upload_url: url,
  },
  ack: { lease_id: id, accepted: flag, code: [short, ""], earned_microusd: [count, 0] },
  revoke: { lease_id: id, reason: short },
  blocked: { reason: [orNull(short), null] },
  drain: { reconnect_ms: whole(0, 600_000) },
  error: { code: short, message: short, fatal: flag, lease_id: [orNull(id), null] },
};

// A reading that the device lacks is left out; every other field is always written.
const OMITS_NULL = new Set(["status"]);

// The message of a frame that a device sent; throws a FrameError, UnknownType or BadField.
export const decodeDevice = (frame) => decode(frame, FROM_DEVICE);

// The message of a frame that the server sent; throws a FrameError, UnknownType or BadField.
export const decodeServer = (frame) => decode(frame, FROM_SERVER);

// The canonical text of a message: fields in their declared order, no spaces. Throws BadField, for a mistake of ours.
export function encode(message) {
  const fields = Object.hasOwn(FROM_DEVICE, message.type) ? FROM_DEVICE[message.type] : FROM_SERVER[message.type];
  const complete = completed(message, fields);
  if (!OMITS_NULL.has(message.type)) return JSON.stringify(complete);
  return JSON.stringify(complete, (_, value) => value ?? undefined);
}

function decode(frame, kinds) {
  const message = parsed(frame);
  if (message.type === undefined) throw missing("type");
  if (typeof message.type !== "string") throw wrong("type", "must be text");
  if (!Object.hasOwn(kinds, message.type)) throw new UnknownType(message.type);
  return completed(message, kinds[message.type]);
}

// Only the fields that the message's type has, each checked.
function completed(message, fields) {
  const result = { type: message.type };
  for (const [field, rule] of Object.entries(fields)) {
    const [check, fallback] = Array.isArray(rule) ? rule : [rule, undefined];
    const value = message[field] === undefined ? fallback : message[field];
    if (value === undefined) throw missing(field);
    check(value, field);
    result[field] = value;
  }
  return result;
}

function parsed(frame) {
  if (typeof frame !== "string") throw new BinaryFrame();
  if (frame.length > MAX_FRAME_BYTES || new TextEncoder().encode(frame).length > MAX_FRAME_BYTES) {
    throw new FrameTooBig();
  }
  let message;
  try {
    message = JSON.parse(frame);
  } catch {
    throw new BadJson();
  }
  if (!isRecord(message)) throw new BadJson();
  return message;
}

function isRecord(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const missing = (field) => new BadField(`${field}: the message lacks it.`, field);
const wrong = (path, problem) => new BadField(`${path}: it ${problem}.`, path);
