// The few things done with the page's elements everywhere in the app.

export const byId = (id) => document.getElementById(id);

export function show(element, shown = true) {
  element.hidden = !shown;
}

// Text of an element, changed only where it differs, so that screen readers are not told the same again.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// An element with text and children: make("li", { className: "bad" }, ["text", child]).
export function make(tag, properties = {}, children = []) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

// Fill a .trouble box with a sentence, or hide it for null.
export function setTrouble(element, sentence) {
  show(element, sentence !== null);
  if (sentence === null) return;
  setText(element.querySelector(".what"), sentence.what);
  setText(element.querySelector(".next"), sentence.next);
}

// What is wrong with a form's field, read out and marked; null takes it away.
export function setFieldError(name, sentence) {
  const [field, error, input] = [byId(`${name}-field`), byId(`${name}-error`), byId(name)];
  field.classList.toggle("wrong", sentence !== null);
  input.toggleAttribute("aria-invalid", sentence !== null);
  show(error, sentence !== null);
  setText(error, sentence === null ? "" : `${sentence.what} ${sentence.next}`);
  if (sentence !== null) input.focus();
}
