// A shard on the GPU: parameters, a slice of data and a seed in; new parameters and losses out. The slice is sent once
// and kernels gather each batch from it.

import { samplesOrder } from "./batches.js";
import { bufferElements, checkFits } from "./compiled.js";
import { exactDifference } from "./delta.js";
import { DeltaEncoder } from "./encoder.js";
import { BadFeed, DeltaNotFinite } from "./errors.js";
import { Executor } from "./executor.js";
import { elementsOf, zeros } from "./tensorfile.js";

const INT32_LIMIT = 2n ** 31n;
const WORD_ARRAYS = { f32: Float32Array, i32: Int32Array, u32: Uint32Array };

export class ShardTrainer {
  #gpu;
  #compiled;
  #executor;
  #stateValues;
  #encoder = null;

  // `compiled` is a training step, from compiledLoads. Trainers are dear to make; shards of one program share one.
  static async create(gpu, compiled) {
    checkFits(compiled, gpu.limits, { rows: 1, steps: 1 });
    const executor = await Executor.create(gpu, compiled);
    return new ShardTrainer(gpu, compiled, executor);
  }

  constructor(gpu, compiled, executor) {
    this.#gpu = gpu;
    this.#compiled = compiled;
    this.#executor = executor;
    this.#stateValues = new Map(compiled.inputs.map(({ role, key, value }) => [key, { role, ...value }]));
  }

  // `params` and `slice` are Maps of tensors, the model's and {inputs, targets}. Resolves to {params, losses, gpuUs}.
  // Throws BadFeed for tensors that do not fit the program, DeviceLimitExceeded, DeviceLost, or the signal's reason.
  async train(task) {
    const gpuUs = await this.#steps(task, this.#compiled.buffers);
    return { ...(await this.#results(task.params, task.steps, () => true)), gpuUs };
  }

  // The same, resolving to {delta, losses, gpuUs}: the delta's file, encoded on the GPU by the kernels that the program's
  // file has for that, so that no parameter is read back.
  async trainDelta(task) {
    const { params, steps } = task;
    const { delta: kernels, deltaBits } = this.#compiled;
    this.#encoder ??= await DeltaEncoder.create(this.#gpu, kernels, this.#statePlaces(), deltaBits);
    const trainedUs = await this.#steps(task, shardBuffers(this.#compiled));
    const { params: trained, losses } = await this.#results(params, steps, ({ dtype }) => dtype !== "float32");
    checkLosses(losses);
    const [spec, exact] = [new Map(), new Map()];
    for (const [name, { dtype, shape, data }] of params) {
      spec.set(name, shape);
      if (dtype !== "float32") exact.set(name, exactDifference(data, trained.get(name).data));
    }
    const { delta, gpuUs } = await this.#encoded({ spec, exact });
    return { delta, losses, gpuUs: trainedUs + gpuUs };
  }

  destroy() {
    this.#executor.destroy();
    this.#encoder?.destroy();
  }

  // All steps of a shard; `buffers` are all that have to fit. Resolves to the GPU time.
  async #steps({ params, slice, steps, seed, learningRate, signal, onStep }, buffers) {
    const data = this.#checkedSlice(slice);
    const rows = data.get("target").shape[0];
    checkFits({ ...this.#compiled, buffers }, this.#gpu.limits, { rows, steps });
    const order = samplesOrder({ rows, batch: this.#compiled.batch, steps, seed });
    const written = this.#contents({ state: this.#checkedState(params), data, order });
    await this.#gpu.accepted(() => {
      this.#compiled.buffers.forEach((buffer, position) => {
        const words = written.get(position);
        if (words) this.#executor.write(position, words);
        else this.#executor.reserve(position, bufferElements(this.#compiled, buffer, { rows, steps }));
      });
      this.#encoder?.begin(params);
    });
    const records = Array.from({ length: steps }, (_, index) => ({ lr: learningRate, step: index + 1, seed }));
    return this.#executor.run(records, { signal, onStep });
  }

  // What an encoder has left over from a broken delta is broken too, and would spoil every later one.
  async #encoded(tensors) {
    try {
      return await this.#encoder.encode(this.#executor, tensors);
    } catch (error) {
      this.#encoder.destroy();
      this.#encoder = null;
      throw error;
    }
  }

  #statePlaces() {
    const places = new Map();
    this.#compiled.buffers.forEach(({ role, key }, position) => {
      if (role === "state") places.set(key, position);
    });
    return places;
  }

  #checkedSlice(slice) {
    const [inputs, targets] = [slice.get("inputs"), slice.get("targets")];
    if (slice.size !== 2 || !inputs || !targets || inputs.shape[0] !== targets.shape[0]) {
      throw new BadFeed("The slice does not hold inputs and targets of as many rows.", "slice");
    }
    const data = new Map([
      ["input0", inputs],
      ["target", targets],
    ]);
    for (const [key, tensor] of data)
      checkTensor(key, tensor, this.#stateValues.get(key), { rowsApart: true });
    return data;
  }

  // The model's tensors as given, and optimizer slots of zeros.
  #checkedState(params) {
    const state = new Map();
    for (const [key, value] of this.#stateValues) {
      if (value.role === "optimizer") state.set(key, zeros(value));
      if (value.role !== "parameter" && value.role !== "buffer") continue;
      checkTensor(key, params.get(key), value, { rowsApart: false });
      state.set(key, params.get(key));
    }
    return state;
  }

  // The words to write, by buffer.
  #contents({ state, data, order }) {
    const sources = { state, data, constant: this.#compiled.constants };
    const contents = new Map();
    this.#compiled.buffers.forEach(({ role, key }, position) => {
      if (role === "order") contents.set(position, order);
      else if (role in sources) contents.set(position, words(sources[role].get(key), key));
    });
    return contents;
  }

  // The losses, and those of the new tensors that are wanted.
  async #results(params, steps, isWanted) {
    const changed = new Set(this.#compiled.outputs.map(({ key }) => key));
    const wanted = [];
    this.#compiled.buffers.forEach(({ role, key, elements }, position) => {
      if (role === "losses") wanted.push({ position, key: null, elements: steps });
      else if (role === "state" && changed.has(key) && params.has(key) && isWanted(params.get(key)))
        wanted.push({ position, key, elements });
    });
    const parts = await this.#executor.read(wanted);
    const [trained, losses] = [new Map(params), []];
    wanted.forEach(({ position, key }, place) => {
      const stored = new WORD_ARRAYS[this.#compiled.buffers[position].dtype](parts[place]);
      if (key === null) losses.push(...stored);
      else trained.set(key, tensor(stored, this.#stateValues.get(key)));
    });
    return { params: trained, losses };
  }
}

// All buffers that a shard takes: the trained tensors, which the delta's kernels work on too, count once.
export function shardBuffers({ buffers, delta }) {
  const own = delta === null ? [] : delta.buffers.filter(({ key }) => !key.startsWith("new/"));
  return [...buffers, ...own];
}

function checkLosses(losses) {
  const broken = losses.findIndex((loss) => !Number.isFinite(loss));
  if (broken >= 0) {
    const when = `after step ${broken + 1}`;
    throw new DeltaNotFinite(`The loss is not finite ${when}; the learning rate may be too high.`, "loss");
  }
}

function checkTensor(key, found, value, { rowsApart }) {
  if (!found) throw new BadFeed(`The tensor '${key}' is missing; give every tensor of the program.`, key);
  const shapes = [found.shape, value.shape].map((shape) => String(rowsApart ? shape.slice(1) : shape));
  if (found.dtype !== value.dtype || shapes[0] !== shapes[1] || elementsOf(found.shape) === 0) {
    throw new BadFeed(
      `'${key}' is ${found.dtype} [${found.shape}]; the program takes ${value.dtype} [${value.shape}].`,
      key,
    );
  }
}

// A tensor as the four-byte words that kernels read.
function words({ dtype, data }, key) {
  if (dtype === "int64") {
    if (data.some((value) => value < -INT32_LIMIT || value >= INT32_LIMIT)) {
      throw new BadFeed(`'${key}' has integers beyond 32 bits, which phones do not have.`, key);
    }
    return Int32Array.from(data, Number);
  }
  return dtype === "bool" ? Int32Array.from(data) : data;
}

function tensor(stored, { dtype, shape }) {
  const result = zeros({ dtype, shape });
  result.data.set(
    dtype === "int64" ? BigInt64Array.from(stored, BigInt) : stored.subarray(0, result.data.length),
  );
  return result;
}
