// The screen of a paired device between its nights: start, what the last night brought, and what to know before.

import { byId, make, setText, setTrouble, show } from "./dom.js";
import { hintCodes, hintSentences } from "./hints.js";
import { clockTime, money } from "./words.js";

const LAST_NIGHT = "nightshift-last-night";
// The button beside a trouble, by what its sentence says is to be done.
const ACTS = { pair: "Pair again", reload: "Load the app anew", devices: "To the Devices page" };

export class Home {
  #screens;
  #sensors;
  #wake;
  #onStart;
  #onAct;

  // `onStart()` is called when the owner has started; `onAct` holds what is done for each of ACTS.
  constructor({ screens, sensors, wake, onStart, onAct }) {
    this.#screens = screens;
    this.#sensors = sensors;
    this.#wake = wake;
    this.#onStart = onStart;
    this.#onAct = onAct;
    byId("start").addEventListener("click", () => this.start());
    byId("forget").addEventListener("click", () => byId("forget-dialog").showModal());
    byId("forget-dialog").addEventListener("close", () => byId("forget-dialog").returnValue === "forget" && onAct.pair());
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

  // The screen is kept on from within the owner's tap, which some browsers ask for.
  async start() {
    this.#trouble(null);
    await this.#wake.hold();
    this.#onStart();
  }

  // A night that did nothing, as of a second tab, says nothing of the one before.
  keepNight({ earnedMicrousd, leasesDone }) {
    if (leasesDone === 0) return;
    const night = { earnedMicrousd, leasesDone, endedMs: Date.now() };
    localStorage.setItem(LAST_NIGHT, JSON.stringify(night));
  }

  #trouble(sentence) {
    setTrouble(byId("home-trouble"), sentence);
    const act = sentence?.act in ACTS ? sentence.act : null;
    const button = byId("home-act");
    show(button, act !== null);
    setText(button, ACTS[act] ?? "");
    button.onclick = this.#onAct[act] ?? null;
    // What only another pairing mends is not mended by starting.
    for (const id of ["start-actions", "home-lead", "hints", "forget"]) show(byId(id), act !== "pair");
  }

  #figures() {
    const kept = localStorage.getItem(LAST_NIGHT);
    show(byId("home-figures"), kept !== null);
    if (kept === null) return;
    const { earnedMicrousd, leasesDone, endedMs } = JSON.parse(kept);
    const figures = [
      [`Last night, until ${clockTime(endedMs)}`, money(earnedMicrousd)],
      ["Pieces of work", String(leasesDone)],
    ];
    const parts = figures.map(([name, value]) =>
      make("div", {}, [make("dt", { textContent: name }), make("dd", { textContent: value })]),
    );
    byId("home-figures").replaceChildren(...parts);
  }
}
