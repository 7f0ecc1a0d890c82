// What the browser tells of the device, null where it tells nothing: unknown never stops work, a wrong zero would.

const NETWORKS = new Set(["wifi", "ethernet", "cellular", "none"]);

// "change" comes whenever `readings` have changed.
export class Sensors extends EventTarget {
  #battery = null;

  async open() {
    this.#battery = (await navigator.getBattery?.().catch(() => null)) ?? null;
    const changed = () => this.dispatchEvent(new Event("change"));
    for (const name of ["levelchange", "chargingchange"]) this.#battery?.addEventListener(name, changed);
    navigator.connection?.addEventListener("change", changed);
    document.addEventListener("visibilitychange", changed);
    for (const name of ["online", "offline"]) addEventListener(name, changed);
  }

  get tellsBattery() {
    return this.#battery !== null;
  }

  get readings() {
    return {
      batteryPercent: this.#battery === null ? null : Math.round(this.#battery.level * 100),
      charging: this.#battery?.charging ?? null,
      network: networkWord(navigator.connection?.type, navigator.onLine),
      visible: document.visibilityState === "visible",
    };
  }
}

// Pure: the protocol's word for what the browser calls the connection.
export function networkWord(type, onLine) {
  if (!onLine) return "none";
  return NETWORKS.has(type) ? type : null;
}
