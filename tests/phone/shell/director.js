// Run in the page by tests: answers for the fake worker, and remembers what the page has told it.

(() => {
  const channel = new BroadcastChannel("director");
  const director = (globalThis.director = {
    heard: [],
    answers: {
      probe: [{ type: "probe", adapter: { vendor: "test", architecture: "one" }, missing: [] }],
      self_test: [{ type: "self_test", ok: true, failed: [] }],
      benchmark: [
        { type: "benchmark", progress: 0.4 },
        { type: "benchmark", result: { flopsPerSecond: 1.51e11, deviceClass: "phone-entry", speedFactor: 1.4 } },
      ],
      stop: [{ type: "state", phase: "off", reason: null, lease: null }],
    },
    state: {
      type: "state",
      phase: "waiting",
      reason: null,
      lease: null,
      terms: null,
      thermal: null,
      speed: null,
      earnedMicrousd: 0,
      leasesDone: 0,
      setback: null,
      clockSkewMs: 0,
      connected: true,
      error: null,
    },
    // The worker's state becomes this, beside what it was.
    become(changes) {
      Object.assign(director.state, changes);
      director.say(director.state);
    },
    say: (message) => channel.postMessage({ to: "page", message }),
    fail: () => channel.postMessage({ to: "worker", fail: true }),
    sleepy: false, // a worker that does not answer
  });
  channel.addEventListener("message", ({ data }) => {
    if (data.to !== "director") return;
    director.heard.push(data.message);
    if (director.sleepy) return;
    for (const message of director.answers[data.message.type] ?? []) director.say(message);
    if (data.message.type === "start") director.become({});
  });
})();
