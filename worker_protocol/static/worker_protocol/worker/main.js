// The worker of the phone app: `new Worker(url, {type: "module"})`. All that works is here, so that the page
// stays smooth.
//
// page -> worker
//   {type: "start"}       work as the device that keys.js has kept
//   {type: "stop"}        hand back what is under way, and stop, within a second
//   {type: "sensors", batteryPercent, charging, network, visible}   null for what the browser cannot tell
//   {type: "probe"}, {type: "self_test"}, {type: "benchmark", ms}    not while it works
// Those that need the self-test's files take their `url` too, where it is not the site's own.
//
// worker -> page
//   {type: "state", phase, reason, lease, terms, thermal, speed, earnedMicrousd, leasesDone, setback, clockSkewMs,
//    connected, error}               on each change, at most four times a second
//     phase          off, connecting, waiting, fetching, training, uploading, paused or ended
//     reason         why it is paused: a reason of the protocol's `blocked`, or stopped, hidden, gpu_lost; self_test
//                    while it connects and tests its kernels first; else null
//     lease          null or {step, steps, leaseId}
//     terms          the protocol's `terms`, or null until the server has told them
//     thermal        nominal, fair, serious, critical; null where speed says nothing of heat
//     speed          the present speed as a part of the best seen, or null
//     earnedMicrousd tonight
//     setback        {family: handback, revoke or refused, code} of the last piece of work that did not end well, or null
//     clockSkewMs    how far the server's clock is ahead of this one; null before the first welcome
//     error          null or {code, message}: with phase `ended` what the owner must mend (errors.js), else the trouble
//                    of the moment: unreachable, connection_lost, storage_full or a code of the protocol
//   {type: "probe", adapter, limits, features, timestamps, variant, deviceClass, missing: [codes]}   see probe.js
//   {type: "self_test", ok, failed: [kernel names], cases: [names]}
//   {type: "benchmark", progress} from 0 to 1, at last {type: "benchmark", result: {flopsPerSecond, deviceClass,
//   speedFactor}}
// The last three come with {error: {code, message}} instead where they could not be done.
//
// Before it connects, the worker proves its kernels by the self-test, unless they have passed it in this browser already.

import { RuntimeUnavailable } from "../runtime/errors.js";
import { sign } from "../wire/signing.js";
import { Blobs } from "./blobs.js";
import { Device } from "./device.js";
import { CannotWork } from "./errors.js";
import { Feed } from "./feed.js";
import { identityLoad } from "./keys.js";
import { Machine } from "./machine.js";
import { probe } from "./probe.js";
import { prove, requireProof } from "./proof.js";
import { benchmark } from "./trial.js";
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
  setback: null,
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

  probe: () => answer("probe", probe),

  self_test: ({ url }) =>
    answer("self_test", () => onTrial((tools) => prove({ ...tools, url }))),

  benchmark: ({ ms, url }) =>
    answer("benchmark", async () => {
      const told = (progress) => postMessage({ type: "benchmark", progress });
      return { result: await onTrial((tools) => benchmark({ ...tools, ms, url, told })) };
    }),
};

globalThis.addEventListener("message", ({ data }) => HANDLERS[data.type]?.(data));
feed.changed();

async function start({ url }) {
  if (night !== null) return;
  const stop = new AbortController();
  night = { stop, device: null };
  show({ phase: "connecting" });
  let ending = {};
  try {
    await work(stop.signal, url);
  } catch (error) {
    if (!stop.signal.aborted) ending = { phase: "ended", error: ofOwner(error) };
  }
  const last = night.device?.state ?? NOTHING;
  night = null;
  const { terms, earnedMicrousd, leasesDone, clockSkewMs } = last;
  show({ terms, earnedMicrousd, leasesDone, clockSkewMs, ...ending });
}

async function work(signal, url) {
  const identity = await identityLoad();
  if (identity === null) throw new CannotWork("not_paired", "This browser is not paired; pair it first.");
  await alone(identity.deviceId, signal, async () => {
    const machine = new Machine();
    try {
      await workWith(machine, identity, { signal, url });
    } finally {
      machine.close();
    }
  });
}

async function workWith(machine, identity, { signal, url }) {
  const limits = await machine.limits();
  const blobs = await Blobs.open();
  const testing = () => show({ phase: "connecting", reason: "self_test" });
  await requireProof({ machine, blobs, signal, url, testing });
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

// Answer the page with what `make` resolves to. One thing at a time: two would time each other.
async function answer(type, make) {
  try {
    if (night !== null) throw new CannotWork("working", "The device works; stop it first.");
    postMessage({ type, ...(await make()) });
  } catch (error) {
    postMessage({ type, error: ofOwner(error) });
  }
}

async function onTrial(body) {
  const machine = new Machine();
  try {
    return await body({ machine, blobs: await Blobs.open() });
  } finally {
    machine.close();
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
