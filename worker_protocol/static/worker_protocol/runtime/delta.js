// How far the local steps of a shard moved the model, a byte or half of one per parameter: "Delta" in docs/programs.md.

import { DeltaNameMismatch, DeltaNotFinite, DeltaShapeMismatch } from "./errors.js";
import { elementsOf, tensorfileDumps } from "./tensorfile.js";

export const BLOCK = 256;
const LARGEST = { 8: 127, 4: 7 };

// The file of `changed - base`, Maps of tensors with the same names, shapes and dtypes, in steps of `bits`.
export function deltaEncode(base, changed, bits = 8) {
  checkNames(base, changed);
  const stored = new Map();
  for (const [name, old] of base) {
    const tensor = changed.get(name);
    if (tensor.dtype !== old.dtype || String(tensor.shape) !== String(old.shape)) {
      throw new DeltaShapeMismatch(
        `Tensor '${name}' is ${tensor.dtype} [${tensor.shape}] but started as ${old.dtype} [${old.shape}].`,
        name,
      );
    }
    if (old.dtype === "float32") {
      const { steps, scales } = quantise(difference(name, old.data, tensor.data), LARGEST[bits]);
      const packed = bits === 4 ? packedNibbles(steps) : steps;
      stored.set(`int${bits}/${name}`, { dtype: "int8", shape: stepShape(old.shape, bits), data: packed });
      stored.set(`scales/${name}`, { dtype: "float32", shape: [scales.length], data: scales });
    } else {
      const data = exactDifference(old.data, tensor.data);
      stored.set(`exact/${name}`, { dtype: "int64", shape: old.shape, data });
    }
  }
  return deltaDumps(stored);
}

// The file of tensors that are encoded already.
export function deltaDumps(stored) {
  return tensorfileDumps(stored, { format: "nightshift.delta", version: "1" });
}

// The shape of the bytes that hold a tensor's steps: its own, or with 4 bits half as many in a row.
export function stepShape(shape, bits) {
  return bits === 4 ? [Math.ceil(elementsOf(shape) / 2)] : shape;
}

// Two steps a byte, the first in the low half.
function packedNibbles(steps) {
  return Int8Array.from(
    { length: Math.ceil(steps.length / 2) },
    (_, place) => (steps[2 * place] & 15) | ((steps[2 * place + 1] ?? 0) << 4),
  );
}

function checkNames(base, changed) {
  const missing = [...base.keys()].find((name) => !changed.has(name));
  if (missing !== undefined) throw new DeltaNameMismatch(`The tensor '${missing}' is missing.`, missing);
  const unexpected = [...changed.keys()].find((name) => !base.has(name));
  if (unexpected !== undefined)
    throw new DeltaNameMismatch(`The tensor '${unexpected}' is not the model's.`, unexpected);
}

export function exactDifference(old, changed) {
  return BigInt64Array.from(changed, (value, place) => BigInt(value) - BigInt(old[place]));
}

function difference(name, old, changed) {
  const values = changed.map((value, place) => value - old[place]);
  if (!values.every(Number.isFinite))
    throw new DeltaNotFinite(`Tensor '${name}' has NaN or infinite values.`, name);
  return values;
}

// Of each block: a scale, its largest magnitude / `most`, and the values in units of it, rounded half to even.
function quantise(values, most) {
  const steps = new Int8Array(values.length);
  const scales = new Float32Array(Math.ceil(values.length / BLOCK));
  for (let block = 0; block < scales.length; block += 1) {
    const end = Math.min((block + 1) * BLOCK, values.length);
    let largest = 0;
    for (let place = block * BLOCK; place < end; place += 1)
      largest = Math.max(largest, Math.abs(values[place]));
    scales[block] = largest / most;
    // A scale of 0 also stands for magnitudes too small for a float32 scale.
    if (scales[block] === 0) continue;
    for (let place = block * BLOCK; place < end; place += 1) {
      const units = roundHalfToEven(Math.fround(values[place] / scales[block]));
      steps[place] = Math.max(-most, Math.min(most, units));
    }
  }
  return { steps, scales };
}

function roundHalfToEven(value) {
  const floor = Math.floor(value);
  const above = value - floor;
  if (above !== 0.5) return above < 0.5 ? floor : floor + 1;
  return floor % 2 === 0 ? floor : floor + 1;
}
