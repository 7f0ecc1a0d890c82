// The socket of a device: logs in, carries messages, and comes back after it drops, with exponential backoff and full
// jitter. What the device works on does not notice (workbench.js).

import { AuthFailed, closeMeaning, DeviceRemoved, Superseded } from "../wire/errors.js";
import { PROTOCOL } from "../wire/limits.js";
import { DeviceSession } from "../wire/session.js";
import { CannotWork } from "./errors.js";
import { backoffMs, pause, steadyMs } from "./waiting.js";

const SOCKET_PATH = "/ws/device/";
const OPEN_TIMEOUT_MS = 10_000;
const NORMAL_CLOSURE = 1000;
// A connection that lasted this long was a good one: the next tries start from short waits again.
const STABLE_MS = 30_000;
const TICK_MS = 250;
// A clock that jumps this far over a tick: the tab was frozen, or the machine slept.
const FROZEN_MS = 5_000;
// After a change of network the server answers a status within this time, or the connection is dead.
const ANSWER_MS = 5_000;
const RECONNECT = { baseMs: 1_000, capMs: 30_000 };
// Errors that are ours, or of a device that sends too much: coming back soon would only repeat them.
const SLOW_CODES = new Set(["binary_frame", "frame_too_big", "bad_json", "wrong_state", "too_fast"]);
const SLOW_ATTEMPT = 5;
const UNREACHABLE = { code: "unreachable", message: "No Nightshift site answers; check the network." };
const LOST = { code: "connection_lost", message: "The connection to the site broke; it is being made anew." };

// Errors after which coming back would change nothing; their sentence says what to do instead.
const FINAL = new Set([AuthFailed, DeviceRemoved, Superseded].map(({ closeCode }) => closeCode));

export class Connection {
  #server;
  #keys;
  #user;
  #reconnect;
  #session = null;
  #socket = null;
  #drainMs = 0;
  #answerDueMs = null;
  #tickedMs = null;
  #ended = null; // {resolve} of the socket in use

  // Why the last try failed, {code, message}, or null while a socket is open and welcome.
  trouble = null;

  // `user` is {hello(), status(), heard(message), ticked(), changed()}; `hello` and `status` return messages.
  constructor({ server, keys, user, reconnect = RECONNECT }) {
    this.#server = server;
    this.#keys = keys;
    this.#user = user;
    this.#reconnect = reconnect;
  }

  get isReady() {
    return this.#session?.state === "READY";
  }

  // Put a message on the socket, if one is open; what matters is said again on the next one.
  say(message) {
    if (!this.isReady) return;
    this.#session.send(message);
    this.#flush();
  }

  // Say the status now; true if it was time for a heartbeat's.
  sayStatus({ changed }) {
    if (!this.isReady) return false;
    const heartbeat = this.#session.statusIsDue(steadyMs());
    if (changed || heartbeat) {
      this.#session.sendStatus(this.#user.status(), steadyMs());
      this.#flush();
    }
    return heartbeat;
  }

  // The network may have changed under the socket: see whether it still lives.
  probe() {
    if (!this.isReady || this.#answerDueMs !== null) return;
    this.#answerDueMs = steadyMs() + ANSWER_MS;
    this.sayStatus({ changed: true });
  }

  // Stay connected until `signal` ends it. Throws CannotWork when the server does not want this device any more.
  async run(signal) {
    for (let attempt = 0; !signal.aborted; ) {
      const openedMs = steadyMs();
      const closeCode = await this.#live(signal);
      if (signal.aborted) return;
      if (FINAL.has(closeCode)) throw cannotWork(closeCode);
      this.trouble = closeMeaning(closeCode) ?? this.trouble ?? LOST;
      this.#user.changed();
      attempt = steadyMs() - openedMs > STABLE_MS ? 0 : attempt + 1;
      if (SLOW_CODES.has(this.trouble?.code)) attempt = Math.max(attempt, SLOW_ATTEMPT);
      const waitMs = backoffMs(attempt, this.#reconnect) + this.#drainMs;
      this.#drainMs = 0;
      await pause(waitMs, { signal, wakesOnline: true }).catch(() => {});
    }
  }

  // Send what waits and close, as the device stops.
  farewell() {
    this.#flush();
    this.#finish(NORMAL_CLOSURE);
  }

  // ---- one socket

  // Live on one socket until it ends; resolves to its close code.
  #live(signal) {
    return new Promise((resolve) => {
      const socket = new WebSocket(this.#server.replace(/^http/, "ws") + SOCKET_PATH, PROTOCOL);
      this.#socket = socket;
      this.#ended = (closeCode) => {
        clearTimeout(opening);
        clearInterval(ticking);
        signal.removeEventListener("abort", stop);
        [this.#socket, this.#session, this.#ended, this.#answerDueMs] = [null, null, null, null];
        resolve(closeCode);
      };
      const stop = () => this.farewell();
      const opening = setTimeout(() => this.#unreachable(), OPEN_TIMEOUT_MS);
      const ticking = setInterval(() => this.#tick(), TICK_MS);
      signal.addEventListener("abort", stop);
      this.#tickedMs = Date.now();
      socket.onopen = () => {
        clearTimeout(opening);
        this.#session = new DeviceSession({ hello: this.#user.hello(), nowMs: steadyMs() });
        this.#flush();
      };
      socket.onmessage = ({ data }) => this.#receive(data);
      socket.onclose = ({ code }) => {
        if (this.#session === null) this.#unreachable();
        else this.#finish(code);
      };
    });
  }

  #unreachable() {
    this.trouble = UNREACHABLE;
    this.#finish(NORMAL_CLOSURE);
  }

  async #receive(frame) {
    const session = this.#session;
    if (session === null) return;
    this.#answerDueMs = null;
    for (const message of session.receive(frame, steadyMs())) {
      if (message.type === "welcome") this.trouble = null;
      if (message.type === "drain") this.#drainMs = message.reconnect_ms;
      this.#user.heard(message);
    }
    if (session.toSign !== null) session.authenticate(await this.#keys.sign(session.toSign));
    if (session === this.#session) this.#flush();
  }

  // Put the session's frames on the socket; end it if the session has ended.
  #flush() {
    if (this.#session === null) return;
    if (this.#socket.readyState === WebSocket.OPEN) {
      for (const frame of this.#session.framesToSend()) this.#socket.send(frame);
    }
    if (this.#session.closeCode !== null) this.#finish(this.#session.closeCode);
  }

  // Leave the socket behind without waiting for the other end, which may be out of reach.
  #finish(closeCode) {
    const socket = this.#socket;
    if (socket === null) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    if (socket.readyState < WebSocket.CLOSING) socket.close(closeCode >= 3000 ? closeCode : NORMAL_CLOSURE);
    this.#ended(closeCode);
  }

  #tick() {
    const [nowMs, wallMs] = [steadyMs(), Date.now()];
    const jumped = Math.abs(wallMs - this.#tickedMs) > FROZEN_MS;
    this.#tickedMs = wallMs;
    if (this.#session === null) return;
    if (jumped) this.probe();
    if (this.#answerDueMs !== null && nowMs > this.#answerDueMs) {
      this.#finish(NORMAL_CLOSURE);
      return;
    }
    this.#session.tick(nowMs);
    this.#flush();
    if (this.isReady) this.#user.ticked();
  }
}

function cannotWork(closeCode) {
  const { code, message } = closeMeaning(closeCode);
  return new CannotWork(code, message);
}
