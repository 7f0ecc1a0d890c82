// A device's end of one `nightshift.v1` socket as a state machine without I/O, as worker_protocol/wire/session.py.
//
//     messages = session.receive(frame, nowMs)                      // what its user must act on
//     if (session.toSign !== null) session.authenticate(signature)  // once it has been made
//     for (const frame of session.framesToSend()) ...
//     if (session.closeCode !== null) ...                           // close the socket with it, after those frames
//
// `nowMs` is any steady clock in whole milliseconds. A session never throws for what its peer sends; it fails itself.
// Sending a message that the state does not allow is its user's mistake and throws WrongState.
//
//              hello ▸            ◂ challenge, auth ▸            ◂ welcome
//     CONNECTING ──────────────────────▶ CHALLENGED ──────────────────────▶ READY
//         └───────────────────────────────────┴───────── any fatal error ─────┴──▶ CLOSED

import { AuthTimeout, ProtocolError, Silent, UnknownType, WrongState } from "./errors.js";
import { AUTH_TIMEOUT_MS, HEARTBEAT_MS, MISSED_HEARTBEATS } from "./limits.js";
import { decodeServer, encode } from "./messages.js";
import { signingBytes } from "./signing.js";

const SENDS = {
  CONNECTING: ["hello"],
  CHALLENGED: ["auth"],
  READY: ["status", "ready", "progress", "result", "handback"],
  CLOSED: [],
};
const RECEIVES = {
  CONNECTING: ["challenge", "error"],
  CHALLENGED: ["welcome", "error"],
  READY: ["terms", "lease", "ack", "revoke", "blocked", "drain", "error"],
  CLOSED: [],
};

export class DeviceSession {
  state = "CONNECTING";
  closeCode = null;
  heartbeatMs = HEARTBEAT_MS;
  // The bytes whose signature the server waits for.
  toSign = null;

  #hello;
  #openedMs;
  #heardMs;
  #statusSentMs = null;
  #frames = [];

  constructor({ hello, nowMs }) {
    this.#hello = hello;
    this.#openedMs = nowMs;
    this.#heardMs = nowMs;
    this.send(hello);
  }

  // When this session fails if nothing (or, before READY, no welcome) comes.
  get deadlineMs() {
    if (this.state === "READY") return this.#heardMs + MISSED_HEARTBEATS * this.heartbeatMs;
    return this.#openedMs + AUTH_TIMEOUT_MS;
  }

  // Frames collected since the last call, in order.
  framesToSend() {
    const frames = this.#frames;
    this.#frames = [];
    return frames;
  }

  send(message) {
    if (!SENDS[this.state].includes(message.type)) throw new WrongState(message.type, this.state);
    this.#frames.push(encode(message));
  }

  // Take a frame off the socket; returns the messages to act on: one, or none.
  receive(frame, nowMs) {
    if (this.state === "CLOSED") return [];
    this.#heardMs = Math.max(this.#heardMs, nowMs);
    let message;
    try {
      message = decodeServer(frame);
      if (!RECEIVES[this.state].includes(message.type)) throw new WrongState(message.type, this.state);
    } catch (error) {
      if (error instanceof UnknownType) return []; // from a newer server
      if (!(error instanceof ProtocolError)) throw error;
      this.fail(error);
      return [];
    }
    return this.#take(message);
  }

  // Answer the challenge. The socket may have failed while the signature was made; then nothing is sent.
  authenticate(signature) {
    if (this.toSign === null || this.state !== "CHALLENGED") return;
    this.toSign = null;
    this.send({ type: "auth", signature });
  }

  // Fail if the server has been silent for too long.
  tick(nowMs) {
    if (this.state === "CLOSED" || nowMs <= this.deadlineMs) return;
    this.fail(this.state === "READY" ? new Silent() : new AuthTimeout());
  }

  // Whether the next heartbeat's status must be sent now.
  statusIsDue(nowMs) {
    if (this.state !== "READY") return false;
    return this.#statusSentMs === null || nowMs - this.#statusSentMs >= this.heartbeatMs;
  }

  sendStatus(status, nowMs) {
    this.send(status);
    this.#statusSentMs = nowMs;
  }

  // End the session because of `error`.
  fail(error) {
    this.close(error.closeCode);
  }

  close(closeCode) {
    if (this.state === "CLOSED") return;
    this.state = "CLOSED";
    this.closeCode = closeCode;
  }

  #take(message) {
    if (message.type === "challenge") {
      this.state = "CHALLENGED";
      this.toSign = signingBytes({ nonce: message.nonce, deviceId: this.#hello.device_id });
      return [];
    }
    if (message.type === "welcome") {
      this.heartbeatMs = message.heartbeat_ms;
      this.state = "READY";
    }
    return [message];
  }
}
