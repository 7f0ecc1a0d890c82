// tfjs on its WebGPU backend: layers and its own momentum optimizer.

const WARM_UP_STEPS = 2;
const BATCH = 64;

const relu = "relu";
const MODELS = {
  mlp: {
    shape: [784],
    layers: () => [
      tf.layers.dense({ units: 256, activation: relu, inputShape: [784] }),
      tf.layers.dense({ units: 256, activation: relu }),
    ],
  },
  cnn: {
    shape: [28, 28, 1],
    layers: () => [...convolution(16, [28, 28, 1]), ...convolution(32), tf.layers.flatten()],
  },
};

function convolution(filters, inputShape) {
  const options = {
    filters,
    kernelSize: 3,
    padding: "same",
    activation: relu,
    ...(inputShape && { inputShape }),
  };
  return [tf.layers.conv2d(options), tf.layers.maxPooling2d({ poolSize: 2 })];
}

globalThis.measure = async (name, steps) => {
  await tf.setBackend("webgpu");
  await tf.ready();
  const { shape, layers } = MODELS[name];
  const model = tf.sequential({ layers: [...layers(), tf.layers.dense({ units: 10 })] });
  const optimizer = tf.train.momentum(0.05, 0.9);
  const inputs = tf.randomUniform([BATCH, ...shape], -1, 1);
  const targets = tf.oneHot(tf.randomUniform([BATCH], 0, 10, "int32"), 10);
  const step = () =>
    tf.tidy(() =>
      optimizer.minimize(() => tf.losses.softmaxCrossEntropy(targets, model.predict(inputs)), true),
    );
  const run = async (many) => {
    let loss;
    for (let done = 0; done < many; done += 1) {
      loss?.dispose();
      loss = step();
    }
    return (await loss.data())[0];
  };
  const startedMs = performance.now();
  const first = await run(1);
  const readyMs = performance.now() - startedMs;
  await run(WARM_UP_STEPS - 1);
  const beganMs = performance.now();
  const last = await run(steps);
  return { readyMs, msPerStep: (performance.now() - beganMs) / steps, losses: [first, last] };
};
