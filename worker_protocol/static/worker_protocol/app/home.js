// The screen of a paired device between its nights: start, what the last night brought, and what to know before.

import { byId, make, setText, setTrouble, show } from "./dom.js";
import { hintCodes, hintSentences } from "./hints.js";
import { sentenceFor } from "./sentences.js";
import { clockTime, money } from "./words.js";

const LAST_NIGHT = "nightshift-last-night";

export class Home {
  #screens;
  #sensors;
  #fitness;
  #wake;
  #onStart;

  // `onStart()` is called when the device is fit and the owner has started; `onForget()` when the browser is unpaired.
  constructor({ screens, sensors, fitness, wake, onStart, onForget }) {
    this.#screens = screens;
    this.#sensors = sensors;
    this.#fitness = fitness;
    this.#wake = wake;
    this.#onStart = onStart;
    byId("start").addEventListener("click", () => this.start());
    byId("forget").addEventListener("click", () => byId("forget-dialog").showModal());
    byId("forget-dialog").addEventListener("close", () => byId("forget-dialog").returnValue === "forget" && onForget());
  }

  // `news`: a line of good news; `trouble`: a sentence of what ended the last night, or null.
  async show(identity, { news = null, trouble = null } = {}) {
    setText(byId("home-title"), identity.name);
    setText(byId("home-news"), news ?? "");
    show(byId("home-news"), news !== null);
    this.#trouble(trouble);
    this.#figures();
    this.#screens.show("home");
    const sentences = hintSentences(await hintCodes({ sensors: this.#sensors }));
    const hints = sentences.map(({ what, next }) =>
      make("li", {}, [make("strong", { textContent: what }), ` ${next}`]),
    );
    byId("hints").replaceChildren(...hints);
  }

  // Within the owner's tap the screen is kept on; then the device must have shown that it computes right.
  async start() {
    const button = byId("start");
    button.disabled = true;
    this.#trouble(null);
    await this.#wake.hold();
    const trouble = await this.#unfit();
    button.disabled = false;
    setText(button, "Start the night");
    if (trouble === null) return this.#onStart();
    await this.#wake.release();
    this.#screens.show("home");
    return this.#trouble(trouble);
  }

  keepNight({ earnedMicrousd, leasesDone }) {
    const night = { earnedMicrousd, leasesDone, endedMs: Date.now() };
    localStorage.setItem(LAST_NIGHT, JSON.stringify(night));
  }

  async #unfit() {
    const onTest = () => setText(byId("start"), "Checking the GPU…");
    try {
      const { ok, failed } = await this.#fitness.known({ onTest });
      return ok ? null : sentenceFor("local", "unfit", { failed });
    } catch (error) {
      const known = ["no_webgpu", "no_gpu"].includes(error.code) ? error.code : "self_test_unavailable";
      return sentenceFor("local", known, { message: error.message });
    }
  }

  #trouble(sentence) {
    setTrouble(byId("home-trouble"), sentence);
  }

  #figures() {
    const kept = localStorage.getItem(LAST_NIGHT);
    show(byId("home-figures"), kept !== null);
    if (kept === null) return;
    const { earnedMicrousd, leasesDone, endedMs } = JSON.parse(kept);
    const figures = [
      [`Earned until ${clockTime(endedMs)}`, money(earnedMicrousd)],
      ["Pieces of work", String(leasesDone)],
    ];
    const parts = figures.map(([name, value]) =>
      make("div", {}, [make("dt", { textContent: name }), make("dd", { textContent: value })]),
    );
    byId("home-figures").replaceChildren(...parts);
  }
}
