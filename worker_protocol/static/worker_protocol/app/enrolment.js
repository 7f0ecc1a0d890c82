// How a browser becomes a device: what it is, whether it can, whose it is, right results and speed, a name, paired.

import { identityCreate, identitySave } from "../worker/keys.js";
import { codeFromText } from "./codes.js";
import { byId, make, setFieldError, setText, setTrouble, show } from "./dom.js";
import { outlookWords } from "./outlook.js";
import { browserChecks, deviceDescription, isApple, isInstalled } from "./probing.js";
import { canScan } from "./scanner.js";
import { ScanPanel } from "./scan-panel.js";
import { anySentenceFor, sentenceFor } from "./sentences.js";
import { codeCreate, devicePair, estimate, facts } from "./site.js";
import { percent, speedWords } from "./words.js";

const BENCHMARK_MS = 10_000;
// A refusal of the code leaves all that was measured; only another code is needed.
const ABOUT_THE_CODE = new Set([
  "pairing_code_wrong",
  "pairing_code_expired",
  "pairing_code_used",
  "too_many_pairing_attempts",
]);

export class Enrolment {
  #screens;
  #worker;
  #onPaired;
  #scan;
  #code = null;
  #facts = null;
  #description = null;
  #speed = null; // {flopsPerSecond, deviceClass, speedFactor}

  // `onPaired(identity)` is called once the identity is kept.
  constructor({ screens, worker, onPaired }) {
    this.#screens = screens;
    this.#worker = worker;
    this.#onPaired = onPaired;
    this.#scan = new ScanPanel((code) => this.#useCode(code));
    byId("welcome-go").addEventListener("click", () => this.#probe());
    byId("probe-go").addEventListener("click", () => this.#join());
    byId("probe-again").addEventListener("click", () => this.#probe());
    byId("code-form").addEventListener("submit", (event) => this.#submitCode(event));
    byId("account-code").addEventListener("click", () => this.#useAccount());
    byId("measure-again").addEventListener("click", () => this.#measure());
    byId("name-form").addEventListener("submit", (event) => this.#submitName(event));
    byId("offer-code").addEventListener("click", () => this.#askForCode());
  }

  // `code` from the address that a camera has opened, or null.
  begin(code) {
    this.#code = code;
    for (const id of ["welcome-code", "install-code"]) {
      show(byId(id), code !== null);
      setText(byId(id).querySelector("strong"), code ?? "");
    }
    this.#screens.show("welcome");
  }

  // ---- can it?

  async #probe() {
    this.#screens.show("probe");
    byId("probe-go").disabled = true;
    show(byId("probe-again"), false);
    const checks = await browserChecks(this.#worker);
    this.#list(checks);
    this.#description = await deviceDescription();
    const able = checks.every(({ ok }) => ok);
    const elsewhere = able && isApple(this.#description) && !isInstalled();
    show(byId("install-advice"), elsewhere);
    byId("probe-go").classList.toggle("quiet", elsewhere);
    setText(byId("probe-go"), elsewhere ? "Go on in the browser all the same" : "Go on");
    byId("probe-go").disabled = !able;
    show(byId("probe-again"), !able);
    this.#screens.announce(able ? "This browser can do it." : "Something is missing.");
    if (able && !elsewhere) byId("probe-go").focus();
  }

  #list(checks) {
    const items = checks.map(({ name, code, ok }) => {
      const { what, next } = ok ? { what: "", next: "" } : sentenceFor("local", code);
      const words = ok ? [] : [make("p", { textContent: `${what} ${next}` })];
      const mark = make("span", { className: "mark", ariaHidden: "true" });
      const state = make("span", { className: "unseen", textContent: ok ? " yes" : " no" });
      return make("li", { className: ok ? "ok" : "bad" }, [
        mark,
        make("div", {}, [make("strong", { textContent: name }), state, ...words]),
      ]);
    });
    byId("checks").replaceChildren(...items);
  }

  // ---- whose?

  async #join() {
    if (this.#code !== null) return this.#measure();
    return this.#askForCode();
  }

  async #askForCode(sentence = null) {
    this.#code = null;
    this.#screens.show("join");
    setFieldError("code", sentence);
    show(byId("scan"), await canScan());
    this.#facts = await facts().catch(() => null);
    const account = this.#facts?.account ?? null;
    show(byId("account"), account !== null);
    setText(byId("account-email"), account?.email ?? "");
    show(byId("log-in"), account === null);
  }

  #submitCode(event) {
    event.preventDefault();
    const code = codeFromText(byId("code").value);
    if (code === null) setFieldError("code", sentenceFor("local", "not_a_code"));
    else this.#useCode(code);
  }

  async #useAccount() {
    const button = byId("account-code");
    button.disabled = true;
    try {
      this.#useCode(await codeCreate(this.#facts.account));
    } catch (error) {
      setFieldError("code", refusal(error));
    } finally {
      button.disabled = false;
    }
  }

  #useCode(code) {
    this.#scan.close();
    this.#code = code;
    setFieldError("code", null);
    if (this.#speed === null) this.#measure();
    else this.#offer();
  }

  // ---- right and fast?

  async #measure() {
    this.#screens.show("measure");
    setTrouble(byId("measure-trouble"), null);
    show(byId("measure-again"), false);
    const [test, speed] = [byId("measure-test"), byId("measure-speed")];
    test.className = "busy";
    speed.className = "";
    byId("measure-progress").value = 0;
    try {
      const { ok, failed } = await this.#worker.selfTest();
      test.className = ok ? "ok" : "bad";
      if (!ok) return this.#troubled(sentenceFor("local", "self_test_failed", { failed }));
      setText(byId("measure-test-words"), "Every kind of computation gave the known answer.");
      speed.className = "busy";
      this.#speed = await this.#worker.benchmark(BENCHMARK_MS, (part) => this.#measuring(part));
    } catch (error) {
      (test.className === "busy" ? test : speed).className = "bad";
      const code = navigator.onLine ? error.code : "offline";
      return this.#troubled(anySentenceFor(code, { message: error.message }));
    }
    speed.className = "ok";
    byId("measure-progress").value = 1;
    setText(byId("measure-speed-words"), speedWords(this.#speed.flopsPerSecond));
    return this.#offer();
  }

  #measuring(part) {
    byId("measure-progress").value = part;
    setText(byId("measure-speed-words"), `Training: ${percent(part * 100)} of ten seconds.`);
  }

  #troubled(sentence) {
    setTrouble(byId("measure-trouble"), sentence);
    show(byId("measure-again"), true);
  }

  // ---- paired

  async #offer() {
    const words = await this.#outlook().catch(() => null); // without it one can be paired all the same
    setTrouble(byId("offer-trouble"), null);
    show(byId("offer-code"), false);
    if (!byId("name").value) byId("name").value = this.#description.name;
    setText(byId("offer-title"), words ? "What a night would earn" : "Almost done");
    setText(byId("offer-range"), words?.range ?? "");
    byId("offer-basis").replaceChildren(...(words?.basis ?? []).map((line) => make("li", { textContent: line })));
    this.#screens.show("offer");
  }

  async #outlook() {
    const [known, { deviceClass, flopsPerSecond }] = [await facts(), this.#speed];
    const found = await estimate(deviceClass, known.hours_a_night);
    return outlookWords({ facts: known, estimate: found, flopsPerSecond });
  }

  async #submitName(event) {
    event.preventDefault();
    const button = byId("offer-go");
    button.disabled = true;
    setFieldError("name", null);
    setTrouble(byId("offer-trouble"), null);
    try {
      await this.#pair(byId("name").value.trim());
    } catch (error) {
      this.#refused(error);
    } finally {
      button.disabled = false;
    }
  }

  async #pair(name) {
    const { keys, publicKey } = await identityCreate();
    const deviceId = await devicePair({
      code: this.#code,
      public_key: publicKey,
      name,
      kind: this.#description.kind,
      device_class: this.#speed.deviceClass,
      speed_factor: this.#speed.speedFactor,
    });
    const identity = { keys, deviceId, server: location.origin, name };
    await identitySave(identity);
    this.#code = null;
    this.#onPaired(identity);
  }

  #refused(error) {
    const sentence = refusal(error);
    if (ABOUT_THE_CODE.has(error.code)) return this.#askForCode(sentence);
    if (error.code === "invalid_name" || error.code === "invalid_input") return setFieldError("name", sentence);
    return setTrouble(byId("offer-trouble"), sentence);
  }
}

// The sentence for what the site, the network or the browser refused.
function refusal({ code, message }) {
  const local = ["offline", "unreachable"].includes(code) || code === undefined;
  return sentenceFor(local ? "local" : "pairing", code ?? "no_storage", { message });
}
