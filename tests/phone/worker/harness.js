// What the tests call in the page. Values cross as JSON: bytes as hex.

import { tensorfileDumps, tensorfileLoads } from "/static/worker_protocol/runtime/tensorfile.js";
import { closeMeaning } from "/static/worker_protocol/wire/errors.js";
import { decodeDevice, decodeServer, encode } from "/static/worker_protocol/wire/messages.js";
import { DeviceSession } from "/static/worker_protocol/wire/session.js";
import { fromHex, sign, signingBytes } from "/static/worker_protocol/wire/signing.js";
import { decide } from "/static/worker_protocol/worker/guard.js";
import { Machine, variantFor } from "/static/worker_protocol/worker/machine.js";
import { ThermalEstimate } from "/static/worker_protocol/worker/thermal.js";
import { selfTest } from "/static/worker_protocol/worker/trial.js";

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

const bytesAt = async (url) => new Uint8Array(await (await fetch(url)).arrayBuffer());

// Where each kernel of the program's file stands.
function kernelPlaces(metadata) {
  return ["compiled.cpu", "delta.cpu"].flatMap((entry) => {
    const { kernels } = JSON.parse(metadata.get(entry));
    return kernels.map((_, place) => ({ entry, place }));
  });
}

// The program's file with what one of its kernels stores made a little larger, or one more.
function withWrongKernel(file, position) {
  const { tensors, metadata } = tensorfileLoads(file);
  const { entry, place } = kernelPlaces(metadata)[position];
  const compiled = JSON.parse(metadata.get(entry));
  const kernel = compiled.kernels[place];
  for (const [type, wrong] of [["f32", "$1($2) * 1.3 + 0.01;"], ["i32", "$1($2) + 1;"], ["u32", "$1($2) ^ 16u;"]]) {
    const written = new RegExp(`var<storage, read_write> (b\\d+): array<${type}\\b`, "g");
    const names = [...kernel.wgsl.matchAll(written)].map(([, name]) => name);
    if (names.length === 0) continue;
    kernel.wgsl = kernel.wgsl.replace(new RegExp(`^( *(?:${names.join("|")})\\[.*\\] = )(.*);$`, "gm"), wrong);
  }
  metadata.set(entry, JSON.stringify(compiled));
  return { name: kernel.name, file: tensorfileDumps(tensors, Object.fromEntries(metadata)) };
}

globalThis.harness = {
  variantFor,

  // The thermal state and speed after each observation; one of no busy time only lets time pass.
  thermal: (observations) => {
    const estimate = new ThermalEstimate();
    return observations.map(({ program = "a", work = 1, busy_ms: busyMs, at_ms: nowMs }) => {
      estimate.observe({ program, work, busyMs, nowMs });
      return { state: estimate.state(nowMs), speed: estimate.speed, pause_ms: estimate.pauseMs(busyMs) };
    });
  },

  // The verdicts on situations one after the other.
  guard: (situations) => {
    let before = null;
    return situations.map((situation) => {
      before = decide({ stopped: false, visible: true, serverNowMs: 0, ...situation, before });
      return before;
    });
  },

  // Train `leases` shards of the self-test's first case; resolves to the GPU buffers that live after each.
  buffersAfterEach: async (leases) => {
    const manifest = await (await fetch("/device/self-test.json")).json();
    const [known] = manifest.cases;
    const [program, params, slice] = await Promise.all(
      [known.program, known.params, known.slice].map(({ sha256 }) => bytesAt(`/device/self-test/${sha256}`)),
    );
    const live = new Set();
    const { createBuffer } = GPUDevice.prototype;
    const { destroy } = GPUBuffer.prototype;
    GPUDevice.prototype.createBuffer = function (descriptor) {
      const buffer = createBuffer.call(this, descriptor);
      live.add(buffer);
      return buffer;
    };
    GPUBuffer.prototype.destroy = function () {
      live.delete(this);
      return destroy.call(this);
    };
    const machine = new Machine();
    const counts = [];
    for (let lease = 0; lease < leases; lease += 1) {
      await machine.load(known.program.sha256, program);
      await machine.train({
        params: tensorfileLoads(params).tensors,
        slice: tensorfileLoads(slice).tensors,
        steps: 50,
        seed: lease,
        learningRate: 0.01,
        onStep: () => {},
      });
      counts.push(live.size);
    }
    machine.close();
    [GPUDevice.prototype.createBuffer, GPUBuffer.prototype.destroy] = [createBuffer, destroy];
    return { counts };
  },

  // For each kernel of a case of the self-test: was it caught when it was the wrong one, and named?
  wrongKernels: async (caseName) => {
    const url = "/device/self-test.json";
    const manifest = await (await fetch(url)).json();
    const known = manifest.cases.find(({ name }) => name === caseName);
    const program = await bytesAt(`/device/self-test/${known.program.sha256}`);
    const kernels = kernelPlaces(tensorfileLoads(program).metadata);
    const machine = new Machine();
    const verdicts = [];
    for (let position = 0; position < kernels.length; position += 1) {
      const wrong = withWrongKernel(program, position);
      const fetched = async ({ sha256, url: at }) => (sha256 === known.program.sha256 ? wrong.file : bytesAt(at));
      machine.close(); // another file under the same hash
      const { ok, failed } = await selfTest({ machine, blobs: { fetch: fetched }, manifest: { cases: [known] } });
      verdicts.push({ kernel: wrong.name, ok, failed });
    }
    machine.close();
    return verdicts;
  },

  // The deltas, as hex, of two self-tests in a row on one GPU, each of two shards.
  deltasOfSelfTests: async () => {
    const manifest = await (await fetch("/device/self-test.json")).json();
    const known = manifest.cases[0];
    const machine = new Machine();
    const blobs = { fetch: async ({ url }) => bytesAt(url) };
    const deltas = [];
    const watched = {
      load: (...file) => machine.load(...file),
      train: async (task) => {
        const trained = await machine.train(task);
        deltas.push(Array.from(trained.delta, (byte) => byte.toString(16).padStart(2, "0")).join(""));
        return trained;
      },
    };
    const url = "/device/self-test.json";
    for (let run = 0; run < 2; run += 1) {
      await selfTest({ machine: watched, blobs, manifest: { cases: [known] }, url });
    }
    machine.close();
    return deltas;
  },

  // What becomes of a good shard, trained on the GPU where one before had numbers that are none.
  afterBrokenShard: async () => {
    const url = "/device/self-test.json";
    const [known] = (await (await fetch(url)).json()).cases;
    const [program, params, slice] = await Promise.all(
      [known.program, known.params, known.slice].map(({ sha256 }) => bytesAt(`/device/self-test/${sha256}`)),
    );
    const machine = new Machine();
    await machine.load(known.program.sha256, program);
    const trained = (learningRate) =>
      outcome(async () => {
        const { losses } = await machine.train({
          params: tensorfileLoads(params).tensors,
          slice: tensorfileLoads(slice).tensors,
          steps: 1,
          seed: known.seed,
          learningRate,
          onStep: () => {},
        });
        return losses.length;
      });
    const outcomes = [await trained(0.02), await trained(1e39), await trained(0.02)];
    machine.close();
    return outcomes;
  },

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
