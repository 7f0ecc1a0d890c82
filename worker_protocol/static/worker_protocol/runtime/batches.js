// Which rows each local step of a shard trains on: "Order of samples in a shard" in docs/programs.md.

// The rows of all steps in one array, `batch` for each step, out of `rows` rows. `seed` is below 2^53.
export function samplesOrder({ rows, batch, steps, seed }) {
  const possible = rows > 0 && rows < 2 ** 32 && batch > 0 && steps >= 0 && seed >= 0;
  if (![rows, batch, steps, seed].every(Number.isSafeInteger) || !possible) {
    throw new RangeError("rows and batch must be positive, steps not negative, and 0 <= seed < 2**53");
  }
  const order = new Int32Array(batch * steps);
  for (let epoch = 0, taken = 0; taken < order.length; epoch += 1, taken += rows) {
    const pass = permutation(rows, seed, epoch);
    order.set(pass.subarray(0, Math.min(rows, order.length - taken)), taken);
  }
  return order;
}

// The order of one pass: rows sorted by key. Mixing is one-to-one, so no two rows share a key.
function permutation(rows, seed, epoch) {
  let base = mix(seed % 2 ** 32);
  base = mix((base ^ Math.floor(seed / 2 ** 32)) >>> 0);
  base = mix((base ^ epoch) >>> 0);
  const keys = Uint32Array.from({ length: rows }, (_, row) => mix((mix(row) ^ base) >>> 0));
  return Uint32Array.from({ length: rows }, (_, row) => row).sort((one, other) => keys[one] - keys[other]);
}

function mix(word) {
  word = (word + 0x9e3779b9) >>> 0;
  word = Math.imul(word ^ (word >>> 16), 0x7feb352d) >>> 0;
  word = Math.imul(word ^ (word >>> 15), 0x846ca68b) >>> 0;
  return (word ^ (word >>> 16)) >>> 0;
}
