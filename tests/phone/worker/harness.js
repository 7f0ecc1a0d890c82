// What the tests call in the page. Values cross as JSON: bytes as hex.

import { closeMeaning } from "/static/worker_protocol/wire/errors.js";
import { decodeDevice, decodeServer, encode } from "/static/worker_protocol/wire/messages.js";
import { DeviceSession } from "/static/worker_protocol/wire/session.js";
import { fromHex, sign, signingBytes } from "/static/worker_protocol/wire/signing.js";

const DECODERS = { device: decodeDevice, server: decodeServer };
const PKCS8_OF_ED25519 = "302e020100300506032b657004220420";

// {value} or, for an error of ours, {error: {name, code, message, field}}.
async function outcome(work) {
  try {
    return { value: await work() };
  } catch (error) {
    if (!("code" in error) || error instanceof DOMException) throw error;
    return { error: { name: error.name, code: error.code, message: error.message, field: error.field ?? null } };
  }
}

function frameOf({ text, binary_hex: binaryHex, repeated }) {
  if (text !== undefined) return text;
  if (binaryHex !== undefined) return fromHex(binaryHex).buffer;
  return repeated.before + repeated.unit.repeat(repeated.times) + repeated.after;
}

function privateKey(seed) {
  return crypto.subtle.importKey("pkcs8", fromHex(PKCS8_OF_ED25519 + seed), "Ed25519", false, ["sign"]);
}

function feed(session, step) {
  if (step.send !== undefined) session.send(decodeDevice(step.send));
  else if (step.tick) session.tick(step.at_ms);
  else return session.receive(step.receive ?? fromHex(step.receive_binary_hex).buffer, step.at_ms);
  return [];
}

globalThis.harness = {
  decoded: (direction, frame) => outcome(() => DECODERS[direction](frameOf(frame))),
  rewritten: (direction, text) => outcome(() => encode(DECODERS[direction](text))),
  encoded: (message) => outcome(() => encode(message)),
  closeMeaning,

  signed: async ({ key_seed: seed, nonce, device_id: deviceId }) => {
    const bytes = signingBytes({ nonce, deviceId });
    return {
      signing_bytes: Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(""),
      signature: await sign(await privateKey(seed), bytes),
    };
  },

  // What the device's end does at each step of a session's vector.
  played: async ({ setup, steps }) => {
    const [hello, status] = [decodeDevice(setup.hello), decodeDevice(setup.status)];
    const key = await privateKey(setup.key_seed);
    const session = new DeviceSession({ hello, nowMs: 0 });
    const outcomes = [];
    for (const step of steps) {
      const actsOn = step.open ? [] : feed(session, step);
      if (session.toSign !== null) session.authenticate(await sign(key, session.toSign));
      if (session.statusIsDue(step.at_ms)) session.sendStatus(status, step.at_ms);
      outcomes.push({
        sends: session.framesToSend(),
        acts_on: actsOn.map(encode),
        state: session.state,
        close_code: session.closeCode,
      });
    }
    return outcomes;
  },
};
