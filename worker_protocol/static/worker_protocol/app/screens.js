// One screen at a time. The heading of a new screen gets the focus, so that keyboards and screen readers are there too.

import { byId, setText, show } from "./dom.js";

export class Screens {
  #sections = new Map(
    [...document.querySelectorAll("[data-screen]")].map((section) => [section.dataset.screen, section]),
  );
  #current = null;

  get current() {
    return this.#current;
  }

  show(name) {
    for (const [other, section] of this.#sections) show(section, other === name);
    const dark = name === "night" || name === "stopped";
    document.body.classList.toggle("at-night", dark);
    if (this.#current === name) return;
    this.#current = name;
    scrollTo(0, 0);
    const target = this.#sections.get(name).querySelector("h1, .tap-area");
    target.focus({ preventScroll: true });
  }

  // Say something without moving anything.
  announce(words) {
    setText(byId("announcer"), words);
  }
}
