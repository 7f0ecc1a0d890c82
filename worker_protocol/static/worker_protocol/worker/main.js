// The worker of the phone app: `new Worker(url, {type: "module"})`. All that works is here, so that the page stays smooth.
//
// page -> worker
//   {type: "start"}       work as the device that keys.js has kept
//   {type: "stop"}        hand back what is under way, and stop, within a second
//   {type: "sensors", batteryPercent, charging, network, visible}   null for what the browser cannot tell
//
// worker -> page
//   {type: "state", phase, reason, lease, terms, thermal, speed, earnedMicrousd, leasesDone, clockSkewMs, connected,
//    error}               on each change, at most four times a second
//     phase          off, connecting, waiting, fetching, training, uploading, paused or ended
//     reason         why it is paused: a reason of the protocol's `blocked`, or stopped, hidden, gpu_lost; else null
//     lease          null or {step, steps, leaseId}
//     terms          the protocol's `terms`, or null until the server has told them
//     thermal        nominal, fair, serious, critical; null where speed says nothing of heat
//     speed          the present speed as a part of the best seen, or null
//     earnedMicrousd tonight
//     clockSkewMs    how far the server's clock is ahead of this one; null before the first welcome
//     error          null or {code, message}: with phase `ended` what the owner must mend (errors.js), else the trouble
//                    of the moment: unreachable, connection_lost, storage_full or a code of the protocol

import { RuntimeUnavailable } from "../runtime/errors.js";
import { sign } from "../wire/signing.js";
import { Blobs } from "./blobs.js";
import { Device } from "./device.js";
import { CannotWork } from "./errors.js";
import { Feed } from "./feed.js";
import { identityLoad } from "./keys.js";
import { Machine } from "./machine.js";
import { pause } from "./waiting.js";

const NOTHING = {
  phase: "off",
  reason: null,
  lease: null,
  terms: null,
  thermal: null,
  speed: null,
  earnedMicrousd: 0,
  leasesDone: 0,
  clockSkewMs: null,
  connected: false,
  error: null,
};
// A page that is loaded anew may come before its former worker has ended.
const LOCK_TRIES = 4;
const LOCK_WAIT_MS = 250;

let night = null; // {stop: AbortController, device}, from start to the end
let sensors = null; // the page's last word
let rest = NOTHING; // the state while nothing works

const feed = new Feed({
  read: () => ({ type: "state", ...(night?.device?.state ?? rest) }),
  post: (state) => postMessage(state),
});

const HANDLERS = {
  start,

  stop() {
    night?.device?.stop();
    night?.stop.abort();
  },

  sensors({ batteryPercent, charging, network, visible }) {
    sensors = { batteryPercent, charging, network, visible };
    night?.device?.sense(sensors);
  },
};

globalThis.addEventListener("message", ({ data }) => HANDLERS[data.type]?.(data));
feed.changed();

async function start() {
  if (night !== null) return;
  const stop = new AbortController();
  night = { stop, device: null };
  show({ phase: "connecting" });
  let ending = {};
  try {
    await work(stop.signal);
  } catch (error) {
    if (!stop.signal.aborted) ending = { phase: "ended", error: ofOwner(error) };
  }
  const last = night.device?.state ?? NOTHING;
  night = null;
  const { terms, earnedMicrousd, leasesDone, clockSkewMs } = last;
  show({ terms, earnedMicrousd, leasesDone, clockSkewMs, ...ending });
}

async function work(signal) {
  const identity = await identityLoad();
  if (identity === null) throw new CannotWork("not_paired", "This browser is not paired; pair it first.");
  await alone(identity.deviceId, signal, async () => {
    const machine = new Machine();
    try {
      await workWith(machine, identity, signal);
    } finally {
      machine.close();
    }
  });
}

async function workWith(machine, identity, signal) {
  const limits = await machine.limits();
  const blobs = await Blobs.open();
  signal.throwIfAborted();
  const signing = (bytes) => sign(identity.keys.privateKey, bytes);
  const device = new Device({
    identity: { ...identity, sign: signing },
    blobs,
    machine,
    limits,
    changed: () => feed.changed(),
  });
  night.device = device;
  if (sensors !== null) device.sense(sensors);
  await device.run(signal);
}

// Run `body` while no other tab of this browser works as the same device.
async function alone(deviceId, signal, body) {
  for (let tries = 1; ; tries += 1) {
    const ran = await navigator.locks.request(`nightshift ${deviceId}`, { ifAvailable: true }, async (lock) => {
      if (lock !== null) await body();
      return lock !== null;
    });
    if (ran) return;
    if (tries === LOCK_TRIES) {
      throw new CannotWork("other_tab", "Another tab of this browser works as this device; use that one.");
    }
    await pause(LOCK_WAIT_MS, { signal });
  }
}

function show(changes) {
  rest = { ...NOTHING, ...changes };
  feed.changed();
}

// What the owner is told of an error that ended the work.
function ofOwner(error) {
  if (error instanceof CannotWork) return { code: error.code, message: error.message };
  if (error instanceof RuntimeUnavailable) return { code: "no_gpu", message: error.message };
  return { code: "error", message: `The worker failed (${error.message}); reload the page.` };
}
