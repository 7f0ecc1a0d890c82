// Keeps the screen on. Browsers take the lock away whenever the page is hidden, so it is taken again when it is back.

export class WakeKeeper extends EventTarget {
  #wanted = false;
  #lock = null;
  #state = "off"; // off, held, lost (until the page is seen again), refused or missing

  constructor() {
    super();
    document.addEventListener("visibilitychange", () => {
      if (this.#wanted && document.visibilityState === "visible") this.#take();
    });
  }

  get state() {
    return this.#state;
  }

  async hold() {
    this.#wanted = true;
    await this.#take();
  }

  async release() {
    this.#wanted = false;
    await this.#lock?.release();
    this.#lock = null;
    this.#become("off");
  }

  async #take() {
    if (!("wakeLock" in navigator)) return this.#become("missing");
    if (this.#lock && !this.#lock.released) return undefined;
    try {
      const lock = await navigator.wakeLock.request("screen");
      if (!this.#wanted) return lock.release();
      this.#lock = lock;
      lock.addEventListener("release", () => {
        if (this.#wanted && this.#lock === lock) this.#become("lost");
      });
      return this.#become("held");
    } catch {
      return this.#become(document.visibilityState === "visible" ? "refused" : "lost");
    }
  }

  #become(state) {
    if (this.#state === state) return;
    this.#state = state;
    this.dispatchEvent(new Event("change"));
  }
}
