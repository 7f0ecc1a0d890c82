// Everything that can be wrong on the wire. Codes and close codes are those of worker_protocol/wire/errors.py.
//
// ProtocolError
// ├── FrameError              a frame that is not a message
// │   ├── BinaryFrame         binary_frame       fatal
// │   ├── FrameTooBig         frame_too_big      fatal
// │   └── BadJson             bad_json           fatal
// ├── MessageError            a message that cannot be taken
// │   ├── UnknownType         unknown_type
// │   ├── BadField            bad_field
// │   └── WrongState          wrong_state        fatal
// ├── IdentityError           a device that may not have this socket
// │   ├── AuthFailed          auth_failed        fatal
// │   ├── DeviceRemoved       device_removed     fatal
// │   └── Superseded          superseded         fatal
// ├── BoundError              a peer past a bound
// │   ├── TooFast             too_fast           fatal
// │   ├── AuthTimeout         auth_timeout       fatal
// │   ├── Silent              silent             fatal
// │   └── SlowReader          slow_reader        fatal
// └── ServerError             not the device's fault
//     ├── Busy                busy
//     └── Internal            internal           fatal

import { MAX_FRAME_BYTES } from "./limits.js";

// `message` is one sentence; `field` names the part of the message at fault, where there is one.
export class ProtocolError extends Error {
  static code = "protocol";
  static fatal = true;
  static closeCode = null;

  constructor(message, field = null) {
    super(message);
    this.name = this.constructor.name;
    this.code = this.constructor.code;
    this.closeCode = this.constructor.closeCode;
    this.field = field;
  }
}

export class FrameError extends ProtocolError {}
export class MessageError extends ProtocolError {}
export class IdentityError extends ProtocolError {}
export class BoundError extends ProtocolError {}
export class ServerError extends ProtocolError {}

export class BinaryFrame extends FrameError {
  static code = "binary_frame";
  static closeCode = 4010;

  constructor() {
    super("Messages are text frames; send tensors over HTTP.");
  }
}

export class FrameTooBig extends FrameError {
  static code = "frame_too_big";
  static closeCode = 4011;

  constructor() {
    super(`A frame has at most ${MAX_FRAME_BYTES} bytes; send less in one message.`);
  }
}

export class BadJson extends FrameError {
  static code = "bad_json";
  static closeCode = 4012;

  constructor() {
    super("The frame is not a JSON object; send one message as one JSON object.");
  }
}

export class UnknownType extends MessageError {
  static code = "unknown_type";
  static fatal = false;
  static closeCode = 4000;

  constructor(type) {
    super(`There is no message type '${type.slice(0, 40)}' in this direction.`, "type");
  }
}

export class BadField extends MessageError {
  static code = "bad_field";
  static fatal = false;
  static closeCode = 4001;
}

export class WrongState extends MessageError {
  static code = "wrong_state";
  static closeCode = 4002;

  constructor(type, state) {
    super(`A message of type '${type}' is not allowed in state ${state}.`, "type");
  }
}

// The rest are told by the server or found by the clock, each with one sentence.
function told(Base, code, closeCode, message, { fatal = true } = {}) {
  return class extends Base {
    static code = code;
    static fatal = fatal;
    static closeCode = closeCode;

    constructor() {
      super(message);
    }
  };
}

export const AuthFailed = told(
  IdentityError,
  "auth_failed",
  4003,
  "No device with this id has the key that signed; pair the device again.",
);
export const DeviceRemoved = told(
  IdentityError,
  "device_removed",
  4004,
  "The owner has removed this device; pair it again to let it work.",
);
export const Superseded = told(
  IdentityError,
  "superseded",
  4005,
  "The same device has connected anew; only its newest socket is used.",
);
export const TooFast = told(BoundError, "too_fast", 4006, "Too many messages; send at most 20 a second.");
export const AuthTimeout = told(
  BoundError,
  "auth_timeout",
  4007,
  "No valid hello and auth in time; send them right after connecting.",
);
export const Silent = told(
  BoundError,
  "silent",
  4008,
  "Nothing was heard for three heartbeats; connect again.",
);
export const SlowReader = told(
  BoundError,
  "slow_reader",
  4009,
  "Messages are not read as fast as they come; read them, then connect again.",
);
export const Busy = told(
  ServerError,
  "busy",
  4013,
  "The server could not take the message now; send it again in a few seconds.",
  { fatal: false },
);
export const Internal = told(
  ServerError,
  "internal",
  4014,
  "The server failed to handle a message; connect again.",
);

const WITH_SENTENCES = [
  BinaryFrame, FrameTooBig, BadJson, AuthFailed, DeviceRemoved, Superseded, TooFast, AuthTimeout, Silent, SlowReader,
  Busy, Internal,
];
const WITH_DETAILS = [
  [UnknownType, "The server does not know a message of this device; reload the page."],
  [BadField, "The server refused a message of this device; reload the page."],
  [WrongState, "The server did not expect a message of this device; reload the page."],
];

// What a socket's close code means, {code, message}; null for a code that is not the protocol's.
export function closeMeaning(closeCode) {
  const found = WITH_SENTENCES.find((kind) => kind.closeCode === closeCode);
  if (found) return { code: found.code, message: new found().message };
  const [kind, message] = WITH_DETAILS.find(([one]) => one.closeCode === closeCode) ?? [null, ""];
  return kind && { code: kind.code, message };
}
