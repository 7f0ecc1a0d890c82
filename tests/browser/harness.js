// What the tests call in the page. Values cross as JSON: bytes as base64, 64-bit integers as numbers.

import { samplesOrder } from "/static/worker_protocol/runtime/batches.js";
import { compiledLoads } from "/static/worker_protocol/runtime/compiled.js";
import { exactDifference } from "/static/worker_protocol/runtime/delta.js";
import { DeltaEncoder } from "/static/worker_protocol/runtime/encoder.js";
import { Executor } from "/static/worker_protocol/runtime/executor.js";
import { openGpu } from "/static/worker_protocol/runtime/gpu.js";
import { SubmissionPlan } from "/static/worker_protocol/runtime/submissions.js";
import { tensorfileDumps, tensorfileLoads } from "/static/worker_protocol/runtime/tensorfile.js";
import { ShardTrainer } from "/static/worker_protocol/runtime/training.js";

const ARRAYS = { float32: Float32Array, int64: BigInt64Array, int32: Int32Array, bool: Uint8Array };

const fromBase64 = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
const toBase64 = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
const fetched = async (name) => new Uint8Array(await (await fetch(`/files/${name}`)).arrayBuffer());

// {value} or, for an error of the runtime, {error: {name, code, message, field}}.
async function outcome(work) {
  try {
    return { value: await work() };
  } catch (error) {
    if (!("code" in error) || error instanceof DOMException) throw error;
    return { error: { name: error.name, code: error.code, message: error.message, field: error.field } };
  }
}

function described(tensors) {
  return new Map(
    Object.entries(tensors).map(([name, { dtype, shape, values }]) => {
      const data = ARRAYS[dtype].from(values, dtype === "int64" ? BigInt : Number);
      return [name, { dtype, shape, data }];
    }),
  );
}

async function trainer(gpu, name) {
  return ShardTrainer.create(gpu, await compiledLoads(await fetched(`${name}.program`), "cpu"));
}

async function shard(name, { steps, seed, learningRate }) {
  const [params, slice] = await Promise.all([fetched(`${name}.params`), fetched(`${name}.slice`)]);
  return {
    params: tensorfileLoads(params).tensors,
    slice: tensorfileLoads(slice).tensors,
    steps,
    seed,
    learningRate,
  };
}

globalThis.harness = {
  order: (task) => outcome(() => Array.from(samplesOrder(task))),

  // The deltas, one after the other from one base, of tensors that lie where training leaves them: in an executor.
  deltas: ({ kernels, base: told, changes, bits }) =>
    outcome(async () => {
      const gpu = await openGpu();
      try {
        const base = described(told);
        const places = new Map();
        kernels.buffers.forEach(({ role, key }, position) => {
          if (role === "input" && key.startsWith("new/")) places.set(key.slice("new/".length), position);
        });
        const training = await Executor.create(gpu, kernels);
        const encoder = await DeltaEncoder.create(gpu, kernels, places, bits);
        const files = [];
        for (const change of changes) {
          const changed = described(change);
          for (const [name, position] of places) training.write(position, changed.get(name).data);
          const [spec, exact] = [new Map(), new Map()];
          for (const [name, { dtype, shape, data }] of base) {
            spec.set(name, shape);
            if (dtype !== "float32") exact.set(name, exactDifference(data, changed.get(name).data));
          }
          encoder.begin(base);
          files.push(toBase64((await encoder.encode(training, { spec, exact })).delta));
        }
        return files;
      } finally {
        gpu.close();
      }
    }),

  rewritten: (file) =>
    outcome(() => {
      const { tensors, metadata } = tensorfileLoads(fromBase64(file));
      return toBase64(tensorfileDumps(tensors, Object.fromEntries(metadata)));
    }),

  loaded: (file, deviceClass, expectedSha256 = null) =>
    outcome(async () => {
      const compiled = await compiledLoads(fromBase64(file), deviceClass, { expectedSha256 });
      return { kernels: compiled.kernels.length, dispatches: compiled.dispatches.length };
    }),

  // The ends of submissions when dispatch p takes `times[p]` ms, through `steps` steps.
  submissions: (estimates, times, steps) => {
    const plan = new SubmissionPlan(estimates);
    const ends = [];
    for (let start = 0; start < times.length * steps; start = ends.at(-1)) {
      const end = plan.endOf(start, times.length * steps);
      let tookMs = 0;
      for (let piece = start; piece < end; piece += 1) tookMs += times[piece % times.length];
      plan.learn(start, end, tookMs);
      ends.push(end);
    }
    return ends;
  },

  train: (name, task) =>
    outcome(async () => {
      const gpu = await openGpu();
      try {
        const machine = await trainer(gpu, name);
        const heard = [];
        const work = await shard(name, task);
        const first = await machine.train({ ...work, onStep: (done) => heard.push(done) });
        const again = await machine.train(work);
        const { params, losses, gpuUs } = first;
        return {
          losses,
          gpuUs,
          heard,
          repeated: again.losses,
          trained: toBase64(tensorfileDumps(params)),
        };
      } finally {
        gpu.close();
      }
    }),

  // The deltas of several runs of one shard, encoded on the GPU by one trainer, and one of the parameters read back.
  trainDeltas: (name, task, runs) =>
    outcome(async () => {
      const gpu = await openGpu();
      try {
        const machine = await trainer(gpu, name);
        const work = await shard(name, task);
        const deltas = [];
        for (let run = 0; run < runs; run += 1) {
          const { delta, losses } = await machine.trainDelta(work);
          deltas.push({ delta: toBase64(delta), losses });
        }
        const { params } = await machine.train(work);
        return { deltas, readBack: toBase64(tensorfileDumps(params)) };
      } finally {
        gpu.close();
      }
    }),

  trainStopped: async (name, task) => {
    const gpu = await openGpu();
    const machine = await trainer(gpu, name);
    const stop = new AbortController();
    let lastStep = 0;
    const onStep = (done) => {
      lastStep = done;
      if (done > 0) stop.abort();
    };
    const work = { ...(await shard(name, task)), signal: stop.signal, onStep };
    const reason = await machine.train(work).then(
      () => null,
      (error) => error.name,
    );
    gpu.close();
    return { reason, lastStep };
  },

  // The GPU goes away in the middle of a run; then a new one is opened and does the work.
  trainThroughLoss: async (name, task) => {
    const gpu = await openGpu();
    const machine = await trainer(gpu, name);
    const work = await shard(name, task);
    const lost = await outcome(() => machine.train({ ...work, onStep: (done) => done > 0 && gpu.close() }));
    const fresh = await openGpu();
    const { losses } = await (await trainer(fresh, name)).train(work);
    fresh.close();
    return { ...lost, losses };
  },

  trainWith: (name, task, changes) =>
    outcome(async () => {
      const gpu = await openGpu();
      try {
        const work = await shard(name, task);
        for (const [part, tensors] of Object.entries(changes)) {
          for (const [key, tensor] of described(tensors)) work[part].set(key, tensor);
        }
        return (await (await trainer(gpu, name)).train(work)).losses;
      } finally {
        gpu.close();
      }
    }),

  // What three buffers of 64 numbers hold, filled with `values`, after `kernel` ran on the first two.
  strayed: (kernel, values) =>
    outcome(async () => {
      const gpu = await openGpu();
      try {
        const dispatches = [{ kernel: 0, buffers: [0, 1] }];
        const executor = await Executor.create(gpu, { kernels: [kernel], dispatches, copies: [] });
        values.forEach((value, position) => executor.write(position, new Float32Array(64).fill(value)));
        await executor.run([{ lr: 0, step: 0, seed: 0 }]);
        const parts = await executor.read(values.map((_, position) => ({ position, elements: 64 })));
        return parts.map((part) => [...new Set(new Float32Array(part))]);
      } finally {
        gpu.close();
      }
    }),

  // A valid file whose first kernel is not WGSL.
  brokenKernel: (name, wgsl) =>
    outcome(async () => {
      const compiled = await compiledLoads(await fetched(`${name}.program`), "cpu");
      const gpu = await openGpu();
      try {
        await Executor.create(gpu, {
          ...compiled,
          kernels: [{ ...compiled.kernels[0], wgsl }, ...compiled.kernels.slice(1)],
        });
        return null;
      } finally {
        gpu.close();
      }
    }),
};
