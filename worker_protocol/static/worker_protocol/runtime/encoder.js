// The delta of a shard, encoded on the GPU by kernels of the program's file: "Delta" in docs/programs.md.
//
// Parameters are not read back: only their steps and scales are. What rounding loses stays in GPU memory and is
// added to the next delta of the same trainer.

import { deltaDumps, stepShape } from "./delta.js";
import { DeltaNotFinite } from "./errors.js";
import { Executor } from "./executor.js";
import { elementsOf } from "./tensorfile.js";

export class DeltaEncoder {
  #compiled;
  #executor;
  #places;
  #bits;

  // `compiled` is the `delta` of a compiled program and `bits` its `deltaBits`; `places` has the position of each
  // trained tensor in the training executor, by name. A tensor without a place is one that no kernel touches.
  static async create(gpu, compiled, places, bits) {
    return new DeltaEncoder(compiled, await Executor.create(gpu, compiled), places, bits);
  }

  constructor(compiled, executor, places, bits) {
    this.#compiled = compiled;
    this.#executor = executor;
    this.#places = places;
    this.#bits = bits;
  }

  // The tensors that the shard starts from, a Map. The residual of the last shard stays as it is.
  begin(params) {
    this.#compiled.buffers.forEach(({ role, key, elements }, position) => {
      const [kind, name] = partsOf(key);
      if (role === "input" && (kind === "base" || !this.#places.has(name)))
        this.#executor.write(position, params.get(name).data);
      else if (role !== "input") this.#executor.reserve(position, elements);
    });
  }

  // The file, and the GPU time in microseconds. `training` is the executor whose buffers hold the new tensors, `spec` the
  // shape of each tensor, `exact` the differences of those that are not floating.
  async encode(training, { spec, exact }) {
    this.#compiled.buffers.forEach(({ role, key }, position) => {
      const [kind, name] = partsOf(key);
      if (role === "input" && kind === "new" && this.#places.has(name)) {
        this.#executor.borrow(position, training, this.#places.get(name));
      }
    });
    const gpuUs = await this.#executor.run([{ lr: 0, step: 0, seed: 0 }]);
    const wanted = this.#compiled.buffers
      .map(({ role, key, elements }, position) => ({ role, key, elements, position }))
      .filter(({ role }) => role === "result");
    const parts = await this.#executor.read(wanted);
    const encoded = new Map(wanted.map(({ key }, place) => [key, parts[place]]));
    return { delta: deltaDumps(this.#tensors(spec, encoded, exact)), gpuUs };
  }

  destroy() {
    this.#executor.destroy();
  }

  #tensors(spec, encoded, exact) {
    const stored = new Map();
    for (const [name, shape] of spec) {
      if (exact.has(name)) {
        stored.set(`exact/${name}`, { dtype: "int64", shape, data: exact.get(name) });
        continue;
      }
      const scales = new Float32Array(encoded.get(`scales/${name}`));
      if (!scales.every(Number.isFinite)) {
        throw new DeltaNotFinite(`Tensor '${name}' has NaN or infinite values.`, name);
      }
      const key = `int${this.#bits}/${name}`;
      const packedShape = stepShape(shape, this.#bits);
      const data = new Int8Array(encoded.get(key)).slice(0, elementsOf(packedShape));
      stored.set(key, { dtype: "int8", shape: packedShape, data });
      stored.set(`scales/${name}`, { dtype: "float32", shape: [scales.length], data: scales });
    }
    return stored;
  }
}

// "kind/name", where the name may have slashes too.
function partsOf(key) {
  const end = key.indexOf("/");
  return [key.slice(0, end), key.slice(end + 1)];
}
