// The file of how far the local steps of a shard moved the model: "Delta" in docs/programs.md.

import { elementsOf, tensorfileDumps } from "./tensorfile.js";

export const BLOCK = 256;

// The file of tensors that are encoded already.
export function deltaDumps(stored) {
  return tensorfileDumps(stored, { format: "nightshift.delta", version: "1" });
}

// The shape of the bytes that hold a tensor's steps: its own, or with 4 bits half as many in a row.
export function stepShape(shape, bits) {
  return bits === 4 ? [Math.ceil(elementsOf(shape) / 2)] : shape;
}

// Of a tensor that is not floating.
export function exactDifference(old, changed) {
  return BigInt64Array.from(changed, (value, place) => BigInt(value) - BigInt(old[place]));
}
