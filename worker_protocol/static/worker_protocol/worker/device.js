// A paired device at work: what the server says, what the sensors say and what the owner says, put together.

import { MAX_CACHED } from "../wire/limits.js";
import { decide } from "./guard.js";
import { shardResult } from "./shard.js";
import { Connection } from "./socket.js";
import { ThermalEstimate } from "./thermal.js";
import { pause, steadyMs } from "./waiting.js";
import { Workbench } from "./workbench.js";

export const AGENT = "nightshift-phone/0.1.0";
const LOOK_MS = 250;
const NETWORKS = ["wifi", "ethernet", "cellular", "none"];
const UNKNOWN = { batteryPercent: null, charging: null, network: null };

export class Device {
  #identity;
  #blobs;
  #machine;
  #limits;
  #changed;
  #bench;
  #connection;
  #thermal = new ThermalEstimate();
  #sensors = UNKNOWN;
  #visible = true;
  #stopped = false;
  #terms = null;
  #clockSkewMs = null;
  #serverBlocked = null;
  #reason = null;
  #statusSaid = "";

  // `identity` as from keys.js, with `sign(bytes)`; `limits` the GPU's; `changed()` hears of all that the owner
  // may see.
  constructor({ identity, blobs, machine, limits, changed, times = {} }) {
    this.#identity = identity;
    this.#blobs = blobs;
    this.#machine = machine;
    this.#limits = limits;
    this.#changed = changed;
    this.#bench = new Workbench({
      work: (lease, { signal, told }) =>
        shardResult(lease, { blobs, machine, signal, told: this.#paced(lease, told, signal) }),
      say: (message) => this.#connection.say(message),
      changed,
      freed: () => this.#sayReady(),
      nowMs: steadyMs,
      times,
    });
    this.#connection = new Connection({
      server: identity.server,
      keys: identity,
      user: {
        hello: () => this.#hello(),
        status: () => this.#status(),
        heard: (message) => this.#hear(message),
        ticked: () => this.#tick(),
        changed,
      },
      ...times,
    });
  }

  // Works until `stop` is called. Throws CannotWork when the server does not want this device any more.
  async run(signal) {
    await this.#bench.restore();
    const looking = setInterval(() => this.#look(), LOOK_MS);
    const online = () => this.#connection.probe();
    globalThis.addEventListener("online", online);
    try {
      await this.#connection.run(signal);
    } finally {
      clearInterval(looking);
      globalThis.removeEventListener("online", online);
      this.#bench.handBack("shutdown");
    }
  }

  // The owner's tap: what is under way goes back before the socket closes.
  stop() {
    this.#stopped = true;
    this.#bench.handBack("shutdown");
    this.#connection.farewell();
  }

  // What the page can tell: {batteryPercent, charging, network, visible}, null for what it cannot.
  sense({ batteryPercent = null, charging = null, network = null, visible = true }) {
    const before = this.#sensors.network;
    this.#sensors = {
      batteryPercent: batteryPercent === null ? null : Math.min(100, Math.max(0, batteryPercent)),
      charging,
      network: NETWORKS.includes(network) ? network : null,
    };
    this.#visible = visible;
    this.#look();
    if (this.#sensors.network !== before) this.#connection.probe();
  }

  // For the page; see main.js.
  get state() {
    const lease = this.#bench.underWay;
    return {
      phase: this.#phase(lease),
      reason: lease === null ? this.#reason : null,
      lease: lease && { step: lease.step, steps: lease.steps, leaseId: lease.leaseId },
      terms: this.#terms,
      thermal: this.#readings().thermal,
      speed: this.#thermal.speed,
      earnedMicrousd: this.#terms?.earned_microusd ?? 0,
      leasesDone: this.#bench.leasesDone,
      setback: this.#bench.setback,
      clockSkewMs: this.#clockSkewMs,
      connected: this.#connection.isReady,
      error: this.#connection.trouble ?? this.#storageTrouble(),
    };
  }

  #phase(lease) {
    if (lease !== null) return lease.stage ?? "fetching";
    if (this.#reason !== null) return "paused";
    return this.#connection.isReady ? "waiting" : "connecting";
  }

  #storageTrouble() {
    if (!this.#blobs.isFull) return null;
    return { code: "storage_full", message: "The browser's storage is full; free some space to fetch less." };
  }

  // ---- messages

  #hello() {
    return {
      type: "hello",
      device_id: this.#identity.deviceId,
      agent: AGENT,
      memory_bytes: this.#limits.totalBytes,
      max_buffer_bytes: this.#limits.bufferBytes,
      leases: this.#bench.held,
      cached: this.#blobs.held(MAX_CACHED),
    };
  }

  #status() {
    const { batteryPercent, charging, network, thermal } = this.#readings();
    return { type: "status", battery_percent: batteryPercent, charging, network, thermal };
  }

  #hear(message) {
    switch (message.type) {
      case "welcome":
        this.#clockSkewMs = message.server_time_ms - Date.now();
        this.#serverBlocked = message.blocked;
        this.#sayStatus(true);
        this.#bench.onNewSocket();
        this.#look();
        this.#sayReady();
        break;
      case "terms":
        this.#terms = message;
        this.#look();
        break;
      case "blocked":
        this.#serverBlocked = message.reason;
        this.#look();
        break;
      case "lease":
        if (this.#reason === null) this.#bench.take(message);
        else this.#bench.refuse(message, "blocked");
        break;
      case "revoke":
        this.#bench.revoke(message);
        this.#sayReady();
        break;
      case "ack":
        this.#bench.acknowledge(message);
        break;
      case "error":
        if (message.code === "busy" && message.lease_id !== null) this.#bench.refusedAsBusy(message.lease_id);
        break;
    }
    this.#changed();
  }

  #sayReady() {
    if (this.#bench.isFree && this.#reason === null) this.#connection.say({ type: "ready" });
  }

  #sayStatus(changed) {
    this.#statusSaid = JSON.stringify(this.#status());
    return this.#connection.sayStatus({ changed });
  }

  #tick() {
    this.#bench.tick();
    const changed = JSON.stringify(this.#status()) !== this.#statusSaid;
    if (this.#sayStatus(changed)) this.#sayReady();
  }

  // ---- whether it may work

  #readings() {
    const thermal = this.#machine.feelsHeat ? this.#thermal.state(steadyMs()) : null;
    return { ...this.#sensors, thermal };
  }

  // Decide anew; stop at once when the device may not work, be ready again when it may.
  #look() {
    const before = this.#reason;
    this.#reason = this.#blockReason();
    if (this.#reason === before) return;
    if (this.#reason !== null) this.#bench.handBack("blocked");
    else this.#sayReady();
    this.#changed();
  }

  #blockReason() {
    const own = decide({
      terms: this.#terms,
      readings: this.#readings(),
      stopped: this.#stopped,
      visible: this.#visible,
      serverNowMs: Date.now() + (this.#clockSkewMs ?? 0),
      before: this.#reason,
    });
    return own ?? this.#serverBlocked ?? (this.#machine.restMs > 0 ? "gpu_lost" : null);
  }

  // Learns the speed from each stretch of steps, and rests between them when the device runs hot.
  #paced(lease, told, signal) {
    let [since, done] = [null, 0];
    const step = async (doneNow) => {
      told.step(doneNow);
      if (doneNow === done) return;
      const nowMs = steadyMs();
      const busyMs = since === null ? 0 : nowMs - since;
      const work = doneNow - done;
      this.#thermal.observe({ program: lease.program.sha256, work, busyMs, nowMs });
      done = doneNow;
      const pauseMs = this.#machine.feelsHeat ? this.#thermal.pauseMs(busyMs) : 0;
      if (pauseMs > 0) await pause(pauseMs, { signal });
      since = steadyMs();
    };
    return { ...told, step };
  }
}
