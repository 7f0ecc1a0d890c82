// The app as something installed: its service worker, its newer versions, and the way to the home screen.

const SERVICE_WORKER = "/device/sw.js";
const LOOK_FOR_UPDATES_EVERY_MS = 3_600_000;

// "update" comes when a newer version waits, "installable" when the browser would put the app on the home screen.
export class Installation extends EventTarget {
  #registration = null;
  #prompt = null;

  constructor() {
    super();
    addEventListener("beforeinstallprompt", (event) => {
      event.preventDefault();
      this.#prompt = event;
      this.dispatchEvent(new Event("installable"));
    });
  }

  get installable() {
    return this.#prompt !== null;
  }

  get updateWaits() {
    return Boolean(this.#registration?.waiting && navigator.serviceWorker.controller);
  }

  async register() {
    if (!("serviceWorker" in navigator)) return;
    // The first version of all takes the page over as it is; a newer one brings a page of its own.
    let controlled = navigator.serviceWorker.controller !== null;
    navigator.serviceWorker.addEventListener("controllerchange", () => {
      if (controlled) location.reload();
      controlled = true;
    });
    this.#registration = await navigator.serviceWorker.register(SERVICE_WORKER, { updateViaCache: "none" });
    this.#registration.addEventListener("updatefound", () => this.#watch(this.#registration.installing));
    if (this.updateWaits) this.dispatchEvent(new Event("update"));
    setInterval(() => this.#registration.update().catch(() => {}), LOOK_FOR_UPDATES_EVERY_MS);
  }

  // Use the newer version now; the page loads anew.
  update() {
    this.#registration.waiting.postMessage({ type: "take_over" });
  }

  async install() {
    const prompt = this.#prompt;
    this.#prompt = null;
    await prompt.prompt();
  }

  #watch(fresh) {
    fresh?.addEventListener("statechange", () => {
      if (this.updateWaits) this.dispatchEvent(new Event("update"));
    });
  }
}
