// What a device shows of itself before it gets work: that its kernels compute what they should, and how fast.

import { BLOCK, LARGEST_STEP, stepsOf } from "../runtime/delta.js";
import { KernelError } from "../runtime/errors.js";
import { elementsOf, tensorfileLoads } from "../runtime/tensorfile.js";
import { CannotWork } from "./errors.js";

export const MANIFEST_URL = "/device/self-test.json";
const PATIENCE_MS = 180_000;
// Another order of sums stays well within this, as a part of how far a tensor moved; a wrong kernel does not.
const LARGEST_ERROR = 0.05;
// What rounding loses of a delta, in units of its scale: sqrt(1 / 12) on average, and some more in a small tensor.
const ROUNDING_ERROR = 0.35;
const LARGEST_LOSS_ERROR = 1e-3;
const RUNS = 2;
// One measurement of the benchmark is meant to take this long.
const RUN_MS = 1_000;
const FIRST_STEPS = 4;
const MOST_STEPS = 4_096;

// {ok, failed: [kernel names], cases: [names of the cases they fail]} of every case's known answers.
export async function selfTest({ machine, blobs, manifest, signal = null, url = MANIFEST_URL }) {
  const [failed, failedCases] = [new Set(), []];
  for (const known of manifest.cases) {
    const kernels = await wrongKernels(known, { machine, blobs, signal, url });
    if (kernels.length > 0) failedCases.push(known.name);
    for (const kernel of kernels) failed.add(kernel);
  }
  return { ok: failed.size === 0, failed: [...failed], cases: failedCases };
}

// {flopsPerSecond, deviceClass, speedFactor} after `ms` of training steps; `told` hears how much of that is over.
export async function benchmark({ machine, blobs, ms, signal = null, url = MANIFEST_URL, told = () => {} }) {
  const { benchmark: known } = JSON.parse(await manifestText(url, signal));
  const program = await blobs.fetch(at(known.program, url), { patienceMs: PATIENCE_MS, signal });
  const compiled = await machine.load(known.program.sha256, program);
  const task = { ...madeUp(compiled), seed: 1, learningRate: 1e-3, signal, onStep: () => {} };
  const stepsUs = [];
  const startedMs = performance.now();
  let steps = FIRST_STEPS;
  for (let spentMs = 0; spentMs < ms || stepsUs.length < 2; spentMs = performance.now() - startedMs) {
    const { gpuUs } = await machine.train({ ...task, steps });
    stepsUs.push(gpuUs / steps);
    told(Math.min(1, (performance.now() - startedMs) / ms));
    steps = Math.round(Math.min(MOST_STEPS, Math.max(FIRST_STEPS, (steps * RUN_MS * 1000) / Math.max(1, gpuUs))));
  }
  const stepUs = median(stepsUs.slice(1)); // the first run makes pipelines
  const deviceClass = classFor(machine.variant, stepUs, known.expected_step_us);
  return {
    flopsPerSecond: (known.flops_per_step * 1e6) / stepUs,
    deviceClass,
    speedFactor: known.expected_step_us[deviceClass] / stepUs,
  };
}

// What the site would have tested. Throws CannotWork `self_test_unavailable`.
export async function manifestText(url, signal) {
  const response = await fetch(url, { signal, cache: "no-cache" }).catch(() => null);
  signal?.throwIfAborted();
  if (!response?.ok) {
    throw new CannotWork("self_test_unavailable", "The site does not give its self-test now; try again later.");
  }
  return response.text();
}

// A file of the manifest at `url`, which lie beside it.
function at(blob, url) {
  const manifest = new URL(url, location.href);
  return { ...blob, url: String(new URL(`self-test/${blob.sha256}`, manifest)) };
}

// ---- known answers

// The names of the kernels that computed what is wrong; those of the whole program where it did not run.
async function wrongKernels(known, { machine, blobs, signal, url }) {
  const fetched = (blob) => blobs.fetch(at(blob, url), { patienceMs: PATIENCE_MS, signal });
  const [program, params, slice, moved] = await Promise.all(
    [known.program, known.params, known.slice, known.moved].map(fetched),
  );
  const compiled = await machine.load(known.program.sha256, program, { anew: true });
  try {
    const task = {
      params: tensorfileLoads(params).tensors,
      slice: tensorfileLoads(slice).tensors,
      steps: known.steps,
      seed: known.seed,
      learningRate: known.learning_rate,
      signal,
      onStep: () => {},
    };
    const expected = tensorfileLoads(moved).tensors;
    const wrong = [];
    // The second delta carries what rounding has lost of the first, and so tells of the kernel that keeps that.
    for (let run = 1; run <= RUNS; run += 1) {
      const found = readDelta(await machine.train(task), compiled.deltaBits);
      wrong.push(...wrongKeys(known, found, expected, { roundings: run }));
    }
    return writersOf(compiled, wrong);
  } catch (error) {
    signal?.throwIfAborted();
    if (!(error instanceof KernelError)) throw error;
    const names = [...compiled.kernels, ...compiled.delta.kernels].map(({ name }) => name);
    return names.includes(error.field) ? [error.field] : names;
  }
}

// A delta as {losses, exact(name), steps(name), scales(name), bits}.
function readDelta({ delta, losses }, bits) {
  const { tensors } = tensorfileLoads(delta);
  return {
    losses,
    exact: (name) => tensors.get(`exact/${name}`).data,
    steps: (name) => stepsOf(tensors, name, bits),
    scales: (name) => tensors.get(`scales/${name}`).data,
    bits,
  };
}

// Keys of the model's tensors that moved elsewhere than they should; null for the losses. The delta holds what so many
// `roundings` have lost.
function wrongKeys(known, found, moved, { roundings }) {
  const wrong = [];
  const off = found.losses.some((loss, step) => {
    const expected = known.losses[step];
    return !(Math.abs(loss - expected) <= LARGEST_LOSS_ERROR * expected);
  });
  if (off || found.losses.length !== known.losses.length) wrong.push(null);
  for (const [key, { data }] of moved) {
    const right =
      data instanceof BigInt64Array ? isSame(data, found.exact(key)) : movedAs(data, found, key, roundings);
    if (!right) wrong.push(key);
  }
  return wrong;
}

const isSame = (expected, found) => expected.every((value, place) => found[place] === value);

// Whether a delta says of a tensor what it should, give or take its own coarseness, which is told by what is expected: a
// scale that came out too large would excuse itself.
function movedAs(expected, found, key, roundings) {
  const [steps, scales] = [found.steps(key), found.scales(key)];
  let [error, allowed] = [0, 0];
  for (let start = 0; start < expected.length; start += BLOCK) {
    const block = expected.subarray(start, start + BLOCK);
    const scale = block.reduce((largest, value) => Math.max(largest, Math.abs(value)), 0) / LARGEST_STEP[found.bits];
    block.forEach((value, offset) => {
      error += (steps[start + offset] * scales[start / BLOCK] - value) ** 2;
      allowed += (LARGEST_ERROR * value) ** 2 + roundings * (ROUNDING_ERROR * scale) ** 2;
    });
  }
  return error <= allowed;
}

// Kernels that write the buffers of these keys, or encode their delta.
function writersOf({ delta, ...compiled }, keys) {
  const tensors = keys.filter((key) => key !== null);
  const trained = writersWhere(
    compiled,
    ({ role, key }) => (role === "losses" && keys.includes(null)) || (role === "state" && tensors.includes(key)),
  );
  const encoded = writersWhere(delta, ({ key }) => tensors.includes(withoutKind(key)));
  return [...new Set([...trained, ...encoded])];
}

// "int8/name", "scales/name" and "residual/name" are all of `name`.
const withoutKind = (key) => key.slice(key.indexOf("/") + 1);

function writersWhere(compiled, isWrong) {
  const names = new Set();
  for (const { kernel: position, buffers } of compiled.dispatches) {
    const kernel = compiled.kernels[position];
    buffers.forEach((place, binding) => {
      if (kernel.writes[binding] && isWrong(compiled.buffers[place])) names.add(kernel.name);
    });
  }
  return [...names];
}

// ---- speed

// Parameters and rows of no meaning: only their shapes count.
function madeUp(compiled) {
  const [params, slice] = [new Map(), new Map()];
  for (const { role, key, value } of compiled.inputs) {
    const data = filled(value);
    if (role === "parameter" || role === "buffer") params.set(key, { ...value, data });
    if (role === "input") slice.set("inputs", { ...value, data });
    if (role === "target") slice.set("targets", { ...value, data });
  }
  return { params, slice };
}

function filled({ dtype, shape }) {
  const elements = elementsOf(shape);
  if (dtype === "int64") return new BigInt64Array(elements);
  if (dtype !== "float32") return new Int32Array(elements);
  return Float32Array.from({ length: elements }, (_, place) => 0.05 * Math.sin(place));
}

// The class of the site's whose speed is nearest, among those of this kind of device.
function classFor(variant, stepUs, expectedStepUs) {
  if (variant === "cpu") return "laptop-cpu";
  const kind = variant === "phone" ? "phone-" : "laptop-gpu";
  const classes = Object.keys(expectedStepUs).filter((key) => key.startsWith(kind));
  const distance = (key) => Math.abs(Math.log(expectedStepUs[key] / stepUs));
  return classes.sort((one, other) => distance(one) - distance(other))[0];
}

function median(values) {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)];
}
