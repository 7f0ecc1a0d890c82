// Our runtime. A measured run is a whole shard: sending parameters and data, the steps, reading all parameters back.

import { compiledLoads } from "/static/worker_protocol/runtime/compiled.js";
import { openGpu } from "/static/worker_protocol/runtime/gpu.js";
import { tensorfileLoads } from "/static/worker_protocol/runtime/tensorfile.js";
import { ShardTrainer } from "/static/worker_protocol/runtime/training.js";

const WARM_UP_STEPS = 2;

globalThis.measure = async (model, steps) => {
  const fetched = async (kind) =>
    new Uint8Array(await (await fetch(`/files/${model}.${kind}`)).arrayBuffer());
  const startedMs = performance.now();
  const compiled = await compiledLoads(await fetched("program"), "cpu");
  const trainer = await ShardTrainer.create(await openGpu(), compiled);
  const readyMs = performance.now() - startedMs;
  const [params, slice] = [
    tensorfileLoads(await fetched("params")).tensors,
    tensorfileLoads(await fetched("slice")).tensors,
  ];
  const shard = (count) => trainer.train({ params, slice, steps: count, seed: 1, learningRate: 0.05 });
  await shard(WARM_UP_STEPS);
  const beganMs = performance.now();
  const { losses, gpuUs } = await shard(steps);
  const msPerStep = (performance.now() - beganMs) / steps;
  return { readyMs, msPerStep, losses: [losses[0], losses.at(-1)], gpuMsPerStep: gpuUs / 1000 / steps };
};
