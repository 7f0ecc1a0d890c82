// The scanner in the page: it opens, says why it cannot, and closes with the first code of this site.

import { codeFromScan } from "./codes.js";
import { byId, setFieldError, show } from "./dom.js";
import { Scanner } from "./scanner.js";
import { sentenceFor } from "./sentences.js";

export class ScanPanel {
  #scanner = new Scanner(byId("scanner-video"));
  #onCode;

  constructor(onCode) {
    this.#onCode = onCode;
    byId("scan").addEventListener("click", () => this.#open());
    byId("scanner-stop").addEventListener("click", () => this.close());
    document.addEventListener("visibilitychange", () => document.hidden && this.close());
  }

  close() {
    this.#scanner.stop();
    show(byId("scanner"), false);
  }

  async #open() {
    setFieldError("code", null);
    show(byId("scanner"), true);
    try {
      await this.#scanner.start((text) => this.#read(text));
    } catch (error) {
      this.close();
      setFieldError("code", sentenceFor("local", error.code ?? "camera_missing"));
    }
  }

  #read(text) {
    const code = codeFromScan(text, location.origin);
    if (code === null) return;
    this.close();
    this.#onCode(code);
  }
}
