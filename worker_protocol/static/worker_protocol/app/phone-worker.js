// The app's Web Worker as the page sees it: requests with an answer, and news of its state. Messages: worker/main.js.

const ADDRESS = "/device/worker.js";
// A worker that says nothing for so long is not going to.
const ANSWER_MS = { probe: 60_000, self_test: 300_000, benchmark: 120_000 };
export const STOP_MS = 900;

export class WorkerFailure extends Error {
  constructor(code, message = "") {
    super(message);
    this.name = "WorkerFailure";
    this.code = code;
  }
}

// "state" events carry the worker's state in `detail`; "died" comes when its script failed.
export class PhoneWorker extends EventTarget {
  #worker = null;
  #waiting = new Map(); // by message type: {resolve, reject, onProgress, timer}
  state = { phase: "off", reason: null };

  probe() {
    return this.#ask("probe", {});
  }

  selfTest() {
    return this.#ask("self_test", {});
  }

  // Resolves to {flopsPerSecond, deviceClass, speedFactor}; `onProgress` hears of 0 to 1.
  benchmark(ms, onProgress) {
    return this.#ask("benchmark", { ms }, onProgress);
  }

  start() {
    this.#post({ type: "start" });
  }

  sensors(readings) {
    this.#post({ type: "sensors", ...readings });
  }

  // Resolves to true once the worker has stopped by itself, to false if it had to be ended.
  async stop() {
    if (this.#worker === null) return true;
    const stopped = new Promise((resolve) => {
      const listen = ({ detail }) => {
        if (!isStopped(detail)) return;
        this.removeEventListener("state", listen);
        resolve(true);
      };
      this.addEventListener("state", listen);
      setTimeout(() => {
        this.removeEventListener("state", listen);
        resolve(false);
      }, STOP_MS);
    });
    this.#post({ type: "stop" });
    const inTime = await stopped;
    if (!inTime) this.end();
    return inTime;
  }

  // Without a word; its lease runs out at the site.
  end() {
    this.#worker?.terminate();
    this.#worker = null;
    this.state = { phase: "off", reason: null };
    this.#failAll(new WorkerFailure("worker_died", "The worker was ended."));
  }

  #post(message) {
    if (this.#worker === null) {
      this.#worker = new Worker(ADDRESS, { type: "module", name: "nightshift" });
      this.#worker.addEventListener("message", ({ data }) => this.#hear(data));
      this.#worker.addEventListener("error", (event) => this.#die(event.message));
      this.#worker.addEventListener("messageerror", () => this.#die("A message could not be read."));
    }
    this.#worker.postMessage(message);
  }

  #ask(type, fields, onProgress = null) {
    const earlier = this.#waiting.get(type);
    if (earlier) return earlier.promise;
    const { promise, resolve, reject } = Promise.withResolvers();
    const overdue = () => this.#settle(type, (one) => one.reject(new WorkerFailure("worker_died", "It took too long.")));
    this.#waiting.set(type, { promise, resolve, reject, onProgress, timer: setTimeout(overdue, ANSWER_MS[type]) });
    this.#post({ type, ...fields });
    return promise;
  }

  #hear(message) {
    if (message.type === "state") {
      this.state = message;
      this.dispatchEvent(new CustomEvent("state", { detail: message }));
    } else if (message.type === "benchmark" && message.result === undefined && message.error === undefined) {
      this.#waiting.get("benchmark")?.onProgress?.(message.progress);
    } else if (message.error) {
      this.#settle(message.type, (one) => one.reject(new WorkerFailure(message.error.code, message.error.message)));
    } else {
      this.#settle(message.type, (one) => one.resolve(message.result ?? message));
    }
  }

  #settle(type, how) {
    const one = this.#waiting.get(type);
    if (!one) return;
    clearTimeout(one.timer);
    this.#waiting.delete(type);
    how(one);
  }

  #failAll(error) {
    for (const type of [...this.#waiting.keys()]) this.#settle(type, (one) => one.reject(error));
  }

  #die(message) {
    this.end();
    this.dispatchEvent(new CustomEvent("died", { detail: message }));
  }
}

function isStopped({ phase, lease }) {
  return (phase === "off" || phase === "ended") && !lease;
}
