// Night mode: the screen stays on, dark, with a clock that moves; the worker works; any tap stops it.

import { byId, setText, show } from "./dom.js";
import { bodyWords, doingWords, warningOf, windowWords } from "./doing.js";
import { driftAt } from "./drift.js";
import { sentenceFor } from "./sentences.js";
import { facts, SiteRefusal } from "./site.js";
import { clockFace, runningMoney } from "./words.js";

const TICK_MS = 1_000;
const MINUTE_MS = 60_000;
// After so long without a connection the owner is told why, if it can be found out; and again each time.
const DIAGNOSE_AFTER_MS = 20_000;
const REVIVALS = 3;
const REVIVE_AFTER_MS = 5_000;

// "over" comes when the night has ended by itself, with the worker's last state in `detail`; "stopped" when the owner
// has ended it, with {earnedMicrousd, leasesDone, inTime}.
export class Night extends EventTarget {
  #worker;
  #sensors;
  #wake;
  #screens;
  #on = false;
  #stopping = false;
  #ticking = null;
  #connectingSinceMs = null;
  #diagnosis = null;
  #revivals = 0;
  #told = "";

  constructor({ worker, sensors, wake, screens }) {
    super();
    this.#worker = worker;
    this.#sensors = sensors;
    this.#wake = wake;
    this.#screens = screens;
    worker.addEventListener("state", ({ detail }) => this.#hear(detail));
    worker.addEventListener("died", () => this.#revive());
    sensors.addEventListener("change", () => this.#on && this.#sense());
    wake.addEventListener("change", () => this.#on && this.#draw());
    byId("stop").addEventListener("click", () => this.stop());
    document.addEventListener("keydown", ({ key }) => key === "Escape" && this.#on && this.stop());
  }

  get on() {
    return this.#on;
  }

  start() {
    this.#on = true;
    this.#revivals = 0;
    this.#told = "";
    this.#forgetConnecting();
    this.#screens.show("night");
    this.#begin();
    this.#ticking = setInterval(() => this.#tick(), TICK_MS);
    this.#tick();
  }

  // The owner sees it at once, and that it is done within a second.
  async stop() {
    if (!this.#on || this.#stopping) return;
    this.#stopping = true;
    setText(byId("doing"), "Stopping…");
    setText(byId("detail"), "");
    const { earnedMicrousd = 0, leasesDone = 0 } = this.#worker.state;
    const inTime = await this.#worker.stop();
    this.#end();
    this.dispatchEvent(new CustomEvent("stopped", { detail: { earnedMicrousd, leasesDone, inTime } }));
  }

  #begin() {
    this.#worker.sensors(this.#sensors.readings); // ahead, so that it begins by knowing
    this.#worker.start();
  }

  #end() {
    this.#on = this.#stopping = false;
    clearInterval(this.#ticking);
    this.#wake.release();
  }

  #hear(state) {
    if (!this.#on || this.#stopping) return;
    if (state.phase === "ended") {
      this.#end();
      this.dispatchEvent(new CustomEvent("over", { detail: state }));
      return;
    }
    if (state.phase !== "connecting" || state.reason === "self_test") this.#forgetConnecting();
    else this.#connectingSinceMs ??= performance.now();
    this.#draw();
  }

  #revive() {
    if (!this.#on || this.#stopping) return;
    this.#revivals += 1;
    if (this.#revivals > REVIVALS) {
      this.#end();
      const detail = { phase: "ended", error: { code: "worker_died", message: "" } };
      this.dispatchEvent(new CustomEvent("over", { detail }));
      return;
    }
    setTimeout(() => this.#on && !this.#stopping && this.#begin(), REVIVE_AFTER_MS);
  }

  #sense() {
    this.#worker.sensors(this.#sensors.readings);
    this.#draw();
  }

  #tick() {
    this.#draw();
    const since = this.#connectingSinceMs;
    if (since !== null && performance.now() - since > DIAGNOSE_AFTER_MS) this.#diagnose();
  }

  // Why the socket does not open: no network, no answer at all, or an answer to everything but sockets.
  async #diagnose() {
    this.#connectingSinceMs = performance.now();
    const found = await facts().then(
      () => "no_socket",
      (error) => (error instanceof SiteRefusal && error.code === "offline" ? "offline" : "unreachable"),
    );
    if (this.#worker.state.phase !== "connecting") return;
    this.#diagnosis = found;
    this.#draw();
  }

  #forgetConnecting() {
    this.#connectingSinceMs = null;
    this.#diagnosis = null;
  }

  #draw() {
    if (!this.#on || this.#stopping) return;
    const nowMs = Date.now();
    const { state } = this.#worker;
    const { doing, detail, tone, progress } = doingWords(state, { nowMs, onLine: navigator.onLine });
    setText(byId("clock"), clockFace(nowMs));
    setText(byId("doing"), doing);
    setText(byId("detail"), detail);
    byId("face").dataset.tone = tone;
    show(byId("shard"), progress !== null);
    byId("shard").value = progress ?? 0;
    setText(byId("earned"), runningMoney(state.earnedMicrousd ?? 0));
    setText(byId("window"), windowWords(state.terms, nowMs));
    setText(byId("heat"), bodyWords(this.#sensors.readings, state));
    const storageFull = state.error?.code === "storage_full";
    const warning = warningOf({ wake: this.#wake.state, state, diagnosis: this.#diagnosis, storageFull });
    const words = warning ? sentenceFor("local", ...warning) : null;
    setText(byId("warned"), words ? `${words.what} ${words.next}` : "");
    this.#move(Math.floor(nowMs / MINUTE_MS));
    this.#tell(doing);
  }

  #move(minute) {
    const { x, y } = driftAt(minute);
    const face = byId("face");
    face.style.setProperty("--drift-x", String(x));
    face.style.setProperty("--drift-y", String(y));
  }

  // Screen readers hear what it does when that changes, not each step.
  #tell(doing) {
    if (this.#told === doing) return;
    this.#told = doing;
    this.#screens.announce(doing);
  }
}

