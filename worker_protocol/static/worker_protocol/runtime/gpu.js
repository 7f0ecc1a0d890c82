// The browser's GPU: opening it, what it grants, and what happens when it gives up.

import { DeviceLimitExceeded, DeviceLost, RuntimeFailure, RuntimeUnavailable } from "./errors.js";
import { kernelsNamed } from "./submissions.js";

// What a page may take in all before Safari on iOS ends it; WebGPU itself tells no such figure.
const TOTAL_BYTES = 1_500_000_000;
const WANTED_LIMITS = ["maxBufferSize", "maxStorageBufferBindingSize"];

// Throws RuntimeUnavailable, with what the owner can do, where there is no GPU to use.
export async function openGpu() {
  if (!globalThis.navigator?.gpu) {
    throw new RuntimeUnavailable(
      "This browser has no WebGPU; use Safari on iOS 26 or Chrome on Android 12, or newer.",
    );
  }
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
  if (adapter === null) {
    throw new RuntimeUnavailable(
      "The browser gives no access to a GPU; close other tabs or restart the browser.",
    );
  }
  const requiredFeatures = ["timestamp-query"].filter((feature) => adapter.features.has(feature));
  const requiredLimits = Object.fromEntries(WANTED_LIMITS.map((name) => [name, adapter.limits[name]]));
  try {
    return new Gpu(await adapter.requestDevice({ requiredFeatures, requiredLimits }));
  } catch (error) {
    throw new RuntimeUnavailable(
      `The browser could not open the GPU (${error.message}); restart the browser.`,
    );
  }
}

class Gpu {
  #lost = null;

  constructor(device) {
    this.device = device;
    this.limits = {
      bufferBytes: Math.min(device.limits.maxBufferSize, device.limits.maxStorageBufferBindingSize),
      totalBytes: TOTAL_BYTES,
    };
    device.lost.then(({ message, reason }) => {
      this.#lost = message || reason;
    });
  }

  close() {
    this.device.destroy();
  }

  // The result of `work`, once the GPU has accepted all of it. Throws DeviceLimitExceeded when memory ran out, else a
  // RuntimeFailure: DeviceLost if the GPU is gone. It names the kernels `during` which the work ran; its field is the
  // kernel where that is only one.
  async accepted(work, { during = [] } = {}) {
    this.device.pushErrorScope("validation");
    this.device.pushErrorScope("out-of-memory");
    const pending = (async () => work())(); // runs up to its first wait before the scopes are closed
    const errors = Promise.all([this.device.popErrorScope(), this.device.popErrorScope()]);
    const [result, scopes] = await Promise.allSettled([pending, errors]);
    await this.#checkAlive(result, during);
    const [outOfMemory, invalid] = scopes.status === "fulfilled" ? scopes.value : [];
    if (outOfMemory) {
      throw new DeviceLimitExceeded(
        "The GPU ran out of memory; use a smaller batch, slice or model.",
        "total_bytes",
      );
    }
    if (result.status === "rejected") throw result.reason;
    if (invalid) throw new RuntimeFailure(`The GPU refused its work: ${firstLine(invalid.message)}`, onlyOne(during));
    return result.value;
  }

  // A lost device rejects what waits for it, and tells of the loss a moment later.
  async #checkAlive(result, during) {
    if (
      result.status === "rejected" &&
      result.reason instanceof DOMException &&
      result.reason.name === "AbortError"
    ) {
      await Promise.race([this.device.lost, new Promise((resolve) => setTimeout(resolve, 100))]);
    }
    if (this.#lost !== null) {
      const where = during.length === 0 ? "between submissions" : `while it ran ${kernelsNamed(during)}`;
      throw new DeviceLost(`The GPU gave up ${where}: ${firstLine(this.#lost)}`, onlyOne(during));
    }
  }
}

const onlyOne = (names) => (names.length === 1 ? names[0] : null);

export function firstLine(message) {
  return message.trim().split("\n")[0].slice(0, 200);
}
