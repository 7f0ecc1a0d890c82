// The GPU of this device and the program that is ready on it. A GPU that is lost is opened anew, after a wait
// that grows with each loss in a row.

import { checkFits, compiledLoads } from "../runtime/compiled.js";
import { DeviceLost, ProgramFormatError, RuntimeUnavailable } from "../runtime/errors.js";
import { openGpu } from "../runtime/gpu.js";
import { ShardTrainer, shardBuffers } from "../runtime/training.js";
import { steadyMs } from "./waiting.js";

const SOFTWARE = /swiftshader|llvmpipe|lavapipe|software|basic render|warp/i;
const MOBILE = /android|iphone|ipad|mobile/i;
const MOBILE_VENDORS = /qualcomm|^arm$|img-tec|imagination|samsung/i;
const REST_BASE_MS = 5_000;
const REST_CAP_MS = 5 * 60_000;

// Which of a program's compiled variants suits an adapter: `cpu`, `phone` or `desktop`. `info` may lack any field.
export function variantFor(info, userAgent) {
  const words = [info.vendor, info.architecture, info.device, info.description].join(" ");
  if (info.isFallbackAdapter || SOFTWARE.test(words)) return "cpu";
  return MOBILE.test(userAgent) || MOBILE_VENDORS.test(info.vendor ?? "") ? "phone" : "desktop";
}

export class Machine {
  #open;
  #gpu = null;
  #info = {}; // of the adapter last used
  #limits = null; // of the GPU last opened
  #loaded = null; // {sha256, compiled, trainer}
  #training = Promise.resolve(); // settles when nothing runs any more, also what was told to stop
  #lossesInARow = 0;
  #restUntilMs = 0;

  // `open` is openGpu, but for tests.
  constructor({ open = openGpu } = {}) {
    this.#open = open;
  }

  // How long to rest before the GPU may be used again; 0 when it may.
  get restMs() {
    return Math.max(0, this.#restUntilMs - steadyMs());
  }

  get variant() {
    return variantFor(this.#info, navigator.userAgent);
  }

  // A speed measured here says something of heat: a processor that plays a GPU shares its time with everything else.
  get feelsHeat() {
    return this.variant !== "cpu";
  }

  // Names the browser and the GPU as far as they tell: what a driver's mistake may depend on.
  async browserName() {
    await this.#opened();
    const { vendor = "", architecture = "", device = "", description = "" } = this.#info;
    return [navigator.userAgent, vendor, architecture, device, description].join(" | ");
  }

  // {bufferBytes, totalBytes} of the GPU; opens it. Throws RuntimeUnavailable.
  async limits() {
    await this.#opened();
    return this.#limits;
  }

  // The program's variant for this GPU, checked. Leases in a row usually share their program, so it is kept ready, with
  // what rounding has lost of its deltas; `anew` forgets that.
  async load(sha256, bytes, { anew = false } = {}) {
    await this.#training;
    await this.#opened();
    if (this.#loaded?.sha256 !== sha256 || anew) {
      this.#unload();
      const compiled = await compiledLoads(bytes, this.variant);
      if (compiled.delta === null) {
        throw new ProgramFormatError("The program has no kernels that encode its delta; compile it with them.");
      }
      this.#loaded = { sha256, compiled, trainer: null };
    }
    return this.#loaded.compiled;
  }

  // Throws DeviceLimitExceeded, with the figures, if a shard of so many rows and steps has no room here.
  checkFits({ rows, steps }) {
    const { compiled } = this.#loaded;
    checkFits({ ...compiled, buffers: shardBuffers(compiled) }, this.#limits, { rows, steps });
  }

  // Train a shard of the program that was loaded last, after what was stopped before has let go of it. `task` is {params,
  // slice, steps, seed, learningRate, signal, onStep}, tensors as in a safetensors file. Resolves to {delta, losses,
  // gpuUs}: the encoded delta, each step's loss, microseconds of GPU time.
  async train(task) {
    await this.#training;
    const trained = this.#train(task);
    this.#training = trained.catch(() => {});
    return trained;
  }

  // Give back all that the GPU holds; the next use opens it anew.
  close() {
    this.#unload();
    this.#gpu?.close();
    this.#gpu = null;
  }

  async #train(task) {
    try {
      const gpu = await this.#opened();
      this.#loaded.trainer ??= await ShardTrainer.create(gpu, this.#loaded.compiled);
      const trained = await this.#loaded.trainer.trainDelta(task);
      this.#lossesInARow = 0;
      return trained;
    } catch (error) {
      if (error instanceof DeviceLost || error instanceof RuntimeUnavailable) this.#lose();
      throw error;
    }
  }

  async #opened() {
    if (this.#gpu === null) {
      const gpu = await this.#open();
      this.#info = gpu.device.adapterInfo ?? (await adapterInfo());
      // A GPU may go while nothing runs on it; what is loaded is gone with it.
      gpu.device.lost.then(() => {
        if (this.#gpu === gpu) this.#drop();
      });
      [this.#gpu, this.#limits] = [gpu, gpu.limits];
    }
    return this.#gpu;
  }

  // The first loss may be chance; a second in a row hardly is.
  #lose() {
    this.#drop();
    this.#lossesInARow += 1;
    if (this.#lossesInARow > 1) {
      const restMs = Math.min(REST_CAP_MS, REST_BASE_MS * 2 ** (this.#lossesInARow - 2));
      this.#restUntilMs = steadyMs() + restMs;
    }
  }

  #drop() {
    if (this.#loaded !== null) this.#loaded.trainer = null; // its buffers went with the GPU
    this.#gpu = null;
  }

  #unload() {
    this.#loaded?.trainer?.destroy();
    this.#loaded = null;
  }
}

// For browsers whose devices do not tell their adapter's name; none of it need be there.
export async function adapterInfo() {
  const adapter = await navigator.gpu?.requestAdapter();
  return adapter?.info ?? {};
}
