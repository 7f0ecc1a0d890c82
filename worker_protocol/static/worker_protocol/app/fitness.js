// Whether this browser has shown that it computes right, remembered until the browser, the GPU or our kernels change.

const KEY = "nightshift-fitness";

// What the self-test's answer holds for: any change of these asks for a new one.
export function fingerprintOf({ agent, adapter, engine }) {
  const { vendor, architecture, device, description } = adapter ?? {};
  return JSON.stringify([agent, vendor, architecture, device, description, engine].map((part) => part ?? ""));
}

export class Fitness {
  #worker;
  #engine;

  constructor(worker) {
    this.#worker = worker;
    this.#engine = document.querySelector("meta[name=nightshift-engine]").content;
  }

  // {ok, failed, probe}: from memory where it still holds, else from a test of a few seconds. `probe` is the worker's.
  // Rejects with a WorkerFailure where the GPU cannot be tested at all, which is not remembered.
  async known({ onTest = () => {} } = {}) {
    const probe = await this.#worker.probe();
    const fingerprint = fingerprintOf({ agent: navigator.userAgent, adapter: probe.adapter, engine: this.#engine });
    const kept = this.#kept();
    if (kept?.fingerprint === fingerprint && kept.ok) return { ok: true, failed: [], probe };
    onTest();
    const { ok, failed = [] } = await this.#worker.selfTest();
    localStorage.setItem(KEY, JSON.stringify({ fingerprint, ok }));
    return { ok, failed, probe };
  }

  #kept() {
    try {
      return JSON.parse(localStorage.getItem(KEY));
    } catch {
      return null; // someone else's text
    }
  }
}
