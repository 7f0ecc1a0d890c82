// A lease from its blobs to its result: fetch, checking at each step that it fits, train, upload.

import {
  DeltaNotFinite,
  DeviceLimitExceeded,
  DeviceLost,
  KernelError,
  RuntimeUnavailable,
} from "../runtime/errors.js";
import { elementsOf, tensorfileLoads } from "../runtime/tensorfile.js";
import { LeaseFailed } from "./errors.js";
import { sha256Hex } from "./transfers.js";
import { upload } from "./uploads.js";

// Waiting for a site that is away is given up when the lease is over, but not sooner than this.
const MIN_PATIENCE_MS = 60_000;
const LOSS_DIGITS = 6;
const FILE_BYTES = { float32: 4, int64: 8, int32: 4, bool: 1 };

// The `result` message of a lease. `told` hears `stage(name)` for fetching, training and uploading, and `step(done)`,
// whose promise the training waits for. Throws LeaseFailed with the wire's reason, or the signal's reason.
export async function shardResult(lease, { blobs, machine, signal, told }) {
  const patienceMs = Math.max(MIN_PATIENCE_MS, lease.time_left_ms);
  const trained = await failing(async () => {
    told.stage("fetching");
    const task = await fetchTask(lease, { blobs, machine, patienceMs, signal });
    told.stage("training");
    return machine.train({ ...task, signal, onStep: told.step });
  }, signal);
  const losses = trained.losses.map((loss) => Number(loss.toPrecision(LOSS_DIGITS)));
  told.stage("uploading");
  const sha256 = await sha256Hex(trained.delta);
  await upload(lease.upload_url, trained.delta, sha256, { patienceMs, signal });
  return {
    type: "result",
    lease_id: lease.lease_id,
    delta_sha256: sha256,
    delta_bytes: trained.delta.length,
    gpu_us: Math.max(1, trained.gpuUs),
    steps: losses.length,
    losses,
  };
}

async function fetchTask(lease, { blobs, machine, patienceMs, signal }) {
  await refuseIfTooBig(lease, machine);
  const fetched = (blob) => blobs.fetch(blob, { patienceMs, signal });
  const compiled = await machine.load(lease.program.sha256, await fetched(lease.program));
  if (compiled.batch !== lease.batch_size) {
    throw new LeaseFailed("bad_program", `compiled for batches of ${compiled.batch}, not ${lease.batch_size}`);
  }
  const rows = Math.floor(lease.slice.size_bytes / rowBytes(compiled));
  fits(() => machine.checkFits({ rows, steps: lease.steps }));
  const [params, slice] = [await fetched(lease.params), await fetched(lease.slice)];
  return {
    params: tensorfileLoads(params).tensors,
    slice: tensorfileLoads(slice).tensors,
    steps: lease.steps,
    seed: lease.seed,
    learningRate: lease.learning_rate,
    programSha256: lease.program.sha256,
  };
}

async function refuseIfTooBig(lease, machine) {
  const { totalBytes } = await machine.limits();
  const neededBytes = lease.program.size_bytes + lease.params.size_bytes + lease.slice.size_bytes;
  if (neededBytes > totalBytes) {
    throw new LeaseFailed("too_big", `needs ${neededBytes} bytes of memory, this device gives ${totalBytes}`);
  }
}

function fits(check) {
  try {
    check();
  } catch (error) {
    throw error instanceof DeviceLimitExceeded ? new LeaseFailed("too_big", error.message) : error;
  }
}

// A row of the slice as it lies in its file.
function rowBytes(compiled) {
  const batch = compiled.inputs.filter(({ role }) => role === "input" || role === "target");
  return batch.reduce((sum, { value }) => sum + elementsOf(value.shape.slice(1)) * FILE_BYTES[value.dtype], 0);
}

// Errors of the runtime as the wire's reasons.
async function failing(work, signal) {
  try {
    return await work();
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof LeaseFailed) throw error;
    const detail = error.code && error instanceof KernelError ? `${error.code}: ${error.message}` : error.message;
    throw new LeaseFailed(reasonOf(error), detail);
  }
}

function reasonOf(error) {
  if (error instanceof DeviceLost || error instanceof RuntimeUnavailable) return "device_lost";
  if (error instanceof DeviceLimitExceeded) return "out_of_memory";
  if (error instanceof RangeError && /allocation|memory/i.test(error.message)) return "out_of_memory";
  if (error instanceof DeltaNotFinite) return "error";
  return error instanceof KernelError ? "bad_program" : "error";
}
