// News for the page: the newest state, at most four times a second.

const LEAST_APART_MS = 250;

export class Feed {
  #read;
  #post;
  #timer = null;
  #postedMs = -Infinity;
  #posted = "";

  // `read()` gives the state as it is then, `post(state)` sends it.
  constructor({ read, post }) {
    this.#read = read;
    this.#post = post;
  }

  // The state may have changed.
  changed() {
    if (this.#timer !== null) return;
    const waitMs = Math.max(0, this.#postedMs + LEAST_APART_MS - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#send();
    }, waitMs);
  }

  #send() {
    const state = this.#read();
    const text = JSON.stringify(state);
    if (text === this.#posted) return;
    [this.#posted, this.#postedMs] = [text, performance.now()];
    this.#post(state);
  }
}
