// jax-js: the whole step, with SGD and momentum, under its jit. An array is used up where it is used, unless by `.ref`.

import {
  defaultDevice,
  init,
  jit,
  lax,
  nn,
  numpy as np,
  tree,
  valueAndGrad,
} from "/node_modules/@jax-js/jax/dist/index.js";

const WARM_UP_STEPS = 2;
const [LEARNING_RATE, MOMENTUM] = [0.05, 0.9];
const BATCH = 64;
const GPT = { batch: 16, length: 64, width: 128, heads: 4, vocabulary: 65 };

const count = (shape) => shape.reduce((product, size) => product * size, 1);
const filled = (shape, value) => np.array(Float32Array.from({ length: count(shape) }, value), { shape });
const uniform = (shape, scale) => filled(shape, () => (2 * Math.random() - 1) * scale);
const weights = (inputs, ...shape) => uniform(shape, 1 / Math.sqrt(inputs));
const randomClasses = (rows, classes) => {
  const chosen = Array.from({ length: rows }, () => Math.floor(Math.random() * classes));
  return filled([rows, classes], (_, place) =>
    chosen[Math.floor(place / classes)] === place % classes ? 1 : 0,
  );
};
const randomTokens = (...shape) =>
  np.array(
    Int32Array.from({ length: count(shape) }, () => Math.floor(Math.random() * GPT.vocabulary)),
    { shape },
  );

const linear = (x, { weight, bias }) => np.dot(x, weight).add(bias);
const newLinear = (inputs, outputs) => ({
  weight: weights(inputs, inputs, outputs),
  bias: np.zeros([outputs]),
});

const mlp = {
  inputs: () => uniform([BATCH, 784], 1),
  targets: () => randomClasses(BATCH, 10),
  parameters: () => ({ first: newLinear(784, 256), second: newLinear(256, 256), head: newLinear(256, 10) }),
  logits: ({ first, second, head }, x) => linear(nn.relu(linear(nn.relu(linear(x, first)), second)), head),
};

const convolved = (x, { weight, bias }) => {
  const images = nn.relu(lax.convGeneralDilated(x, weight, [1, 1], "SAME").add(bias));
  return lax.reduceWindow(images, (window) => np.max(window), [2, 2], [2, 2]);
};
const cnn = {
  inputs: () => uniform([BATCH, 1, 28, 28], 1),
  targets: () => randomClasses(BATCH, 10),
  parameters: () => ({
    first: { weight: weights(9, 16, 1, 3, 3), bias: np.zeros([16, 1, 1]) },
    second: { weight: weights(144, 32, 16, 3, 3), bias: np.zeros([32, 1, 1]) },
    head: newLinear(1568, 10),
  }),
  logits: ({ first, second, head }, x) =>
    linear(convolved(convolved(x, first), second).reshape([BATCH, 1568]), head),
};

const newNorm = () => ({ scale: np.ones([GPT.width]), shift: np.zeros([GPT.width]) });
const normed = (x, { scale, shift }) => nn.standardize(x, -1).mul(scale).add(shift);
const newBlock = () => ({
  attentionNorm: newNorm(),
  query: newLinear(GPT.width, GPT.width),
  key: newLinear(GPT.width, GPT.width),
  value: newLinear(GPT.width, GPT.width),
  mix: newLinear(GPT.width, GPT.width),
  mlpNorm: newNorm(),
  wide: newLinear(GPT.width, 4 * GPT.width),
  narrow: newLinear(4 * GPT.width, GPT.width),
});
function block(x, p) {
  const h = normed(x.ref, p.attentionNorm);
  const split = (projection) =>
    linear(h.ref, projection).reshape([GPT.batch, GPT.length, GPT.heads, GPT.width / GPT.heads]);
  const [query, key, value] = [split(p.query), split(p.key), split(p.value)];
  h.dispose();
  const attended = nn.dotProductAttention(query, key, value, { isCausal: true });
  const mixed = x.add(linear(attended.reshape([GPT.batch, GPT.length, GPT.width]), p.mix));
  return mixed.ref.add(
    linear(nn.gelu(linear(normed(mixed, p.mlpNorm), p.wide), { approximate: false }), p.narrow),
  );
}
const gpt = {
  inputs: () => randomTokens(GPT.batch, GPT.length),
  targets: () => randomClasses(GPT.batch * GPT.length, GPT.vocabulary),
  parameters: () => ({
    tokens: weights(GPT.width, GPT.vocabulary, GPT.width),
    positions: weights(GPT.width, GPT.length, GPT.width),
    blocks: [newBlock(), newBlock()],
    norm: newNorm(),
    head: weights(GPT.width, GPT.width, GPT.vocabulary),
  }),
  logits: ({ tokens, positions, blocks, norm, head }, x) => {
    const embedded = np.dot(nn.oneHot(x, GPT.vocabulary), tokens).add(positions);
    const h = normed(blocks.reduce(block, embedded), norm);
    return np.dot(h.reshape([GPT.batch * GPT.length, GPT.width]), head);
  },
};

const MODELS = { mlp, cnn, gpt };

globalThis.measure = async (name, steps) => {
  await init();
  defaultDevice("webgpu");
  const model = MODELS[name];
  const loss = (parameters, x, y) =>
    np.mean(np.sum(nn.logSoftmax(model.logits(parameters, x)).mul(y), 1)).neg();
  const step = jit((parameters, moments, x, y) => {
    const [value, gradients] = valueAndGrad(loss)(tree.ref(parameters), x, y);
    const moved = tree.map((moment, gradient) => moment.mul(MOMENTUM).add(gradient), moments, gradients);
    const updated = tree.map(
      (parameter, moment) => parameter.sub(moment.mul(LEARNING_RATE)),
      parameters,
      tree.ref(moved),
    );
    return [updated, moved, value];
  });
  const [x, y] = [model.inputs(), model.targets()];
  let parameters = model.parameters();
  let moments = tree.map((parameter) => np.zeros(parameter.shape), parameters);
  let value;
  const run = async (many) => {
    for (let done = 0; done < many; done += 1) {
      value?.dispose();
      [parameters, moments, value] = step(parameters, moments, x.ref, y.ref);
    }
    const read = value.ref;
    return read.jsAsync();
  };
  const startedMs = performance.now();
  const first = await run(1);
  const readyMs = performance.now() - startedMs;
  await run(WARM_UP_STEPS - 1);
  const beganMs = performance.now();
  const last = await run(steps);
  return { readyMs, msPerStep: (performance.now() - beganMs) / steps, losses: [first, last] };
};
