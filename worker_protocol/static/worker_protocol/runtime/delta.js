// The file of how far the local steps of a shard moved the model: "Delta" in docs/programs.md.

import { elementsOf, tensorfileDumps } from "./tensorfile.js";

export const BLOCK = 256;
export const LARGEST_STEP = { 8: 127, 4: 7 };

// The file of tensors that are encoded already.
export function deltaDumps(stored) {
  return tensorfileDumps(stored, { format: "nightshift.delta", version: "1" });
}

// The shape of the bytes that hold a tensor's steps: its own, or with 4 bits half as many in a row.
export function stepShape(shape, bits) {
  return bits === 4 ? [Math.ceil(elementsOf(shape) / 2)] : shape;
}

// The steps of a floating tensor in a delta's file, whose half bytes hold two of them, the first in the low half.
export function stepsOf(tensors, name, bits) {
  const { data } = tensors.get(`int${bits}/${name}`);
  if (bits === 8) return data;
  return Int8Array.from({ length: 2 * data.length }, (_, place) =>
    place % 2 === 0 ? (data[place / 2] << 28) >> 28 : data[(place - 1) / 2] >> 4,
  );
}

// Of a tensor that is not floating.
export function exactDifference(old, changed) {
  return BigInt64Array.from(changed, (value, place) => BigInt(value) - BigInt(old[place]));
}
