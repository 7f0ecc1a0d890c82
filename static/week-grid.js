// The week as a grid: seven days of forty-eight half hours, painted by finger, mouse or keyboard. It writes the form's
// rows and reads them again when they are edited, so that the rows remain the one thing that is sent.
//
// A finger paints once it has moved sideways: the grid leaves up and down to scrolling (touch-action: pan-y), and a
// gesture that the browser takes for scrolling is cancelled and paints nothing. A tap turns one half hour.

import { DAY_MIN, covered, minutesOf, painted, rowsOf, spansOf } from "./week.js";

const DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const SLOT_MIN = 30;
const SLOTS = DAY_MIN / SLOT_MIN;
const SIDEWAYS_PX = 6; // from here on a finger paints
const STEPS_BACK = 50;
const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

export class WeekGrid {
  #form;
  #rows;
  #grid;
  #cells = []; // by day, then by half hour
  #spans = [];
  #past = []; // earlier spans, to go back to
  #focus = { day: 0, slot: 0 };
  #anchor = null; // where a selection by keyboard or a stroke began
  #stroke = null; // { pointerId, x, on, painting, at }

  constructor(form, rows) {
    this.#form = form;
    this.#rows = rows;
    const part = form.querySelector("[data-week]");
    this.#grid = part.querySelector("[role=grid]");
    this.#build(part.dataset.now);
    this.#listen(part);
    rows.addEventListener("change", () => this.#take(spansOf(rows.read())));
    this.#spans = spansOf(rows.read());
    part.hidden = false;
    const exact = form.querySelector("[data-exact]");
    exact.open = exact.querySelector(".error") !== null;
    this.#show();
  }

  // ---- the page

  #build(now) {
    const [nowDay, nowMinute] = now.split(" ").map(Number);
    this.#grid.append(hours());
    DAYS.forEach((name, day) => {
      const row = element("div", { role: "row", class: "week-day" });
      row.append(element("span", { role: "rowheader", "aria-label": name }, name.slice(0, 3)));
      const slots = element("div", { role: "presentation", class: "week-slots" });
      const cells = Array.from({ length: SLOTS }, () => element("div", { role: "gridcell", tabindex: "-1" }));
      slots.append(...cells);
      row.append(slots);
      if (day === nowDay) cells[Math.floor(nowMinute / SLOT_MIN)].classList.add("now");
      this.#cells.push(cells);
      this.#grid.append(row);
    });
  }

  #listen(part) {
    this.#grid.addEventListener("pointerdown", (event) => this.#press(event));
    this.#grid.addEventListener("pointermove", (event) => this.#move(event));
    this.#grid.addEventListener("pointerup", (event) => this.#lift(event));
    this.#grid.addEventListener("pointercancel", () => this.#drop());
    this.#grid.addEventListener("keydown", (event) => this.#key(event));
    // Where a browser would scroll after all once a stroke has begun.
    this.#grid.addEventListener("touchmove", (event) => this.#stroke?.painting && event.preventDefault(), { passive: false });
    for (const button of part.querySelectorAll("[data-preset]")) {
      button.addEventListener("click", () => this.#paint(spansOf(JSON.parse(button.dataset.preset)), `${button.textContent}.`));
    }
    part.querySelector("[data-undo]").addEventListener("click", () => this.#undo());
  }

  #show(chosen = null) {
    this.#cells.forEach((cells, day) => cells.forEach((cell, slot) => {
      const share = covered(this.#spans, ...span(day, slot));
      const state = share === 0 ? "off" : share === 1 ? "on" : "partly on";
      cell.className = cell.classList.contains("now") ? "now" : "";
      if (share > 0) cell.classList.add(share === 1 ? "on" : "partly");
      if (chosen && within(chosen, day, slot)) cell.classList.add(chosen.on ? "adding" : "taking");
      cell.setAttribute("aria-selected", String(share > 0));
      cell.setAttribute("aria-label", `${DAYS[day]} ${clock(slot)} to ${clock(slot + 1)}, ${state}`);
      cell.tabIndex = day === this.#focus.day && slot === this.#focus.slot ? 0 : -1;
    }));
    this.#sum();
  }

  #sum() {
    const rows = rowsOf(this.#spans);
    const windows = rows.reduce((count, row) => count + row.days.length, 0);
    const most = Number(this.#form.dataset.most);
    const hours = minutesOf(this.#spans) / 60;
    const sum = this.#form.querySelector("[data-sum]");
    sum.textContent = windows > most
      ? `These are ${windows} separate windows; at most ${most} can be saved. Join some of them.`
      : `${Number(hours.toFixed(1))} hours a week`;
    sum.classList.toggle("error", windows > most);
  }

  #say(words) {
    this.#form.querySelector("[data-said]").textContent = words;
  }

  // ---- changes

  #paint(spans, words) {
    this.#past.push(this.#spans);
    if (this.#past.length > STEPS_BACK) this.#past.shift();
    this.#keep(spans);
    this.#say(words);
  }

  #undo() {
    const before = this.#past.pop();
    if (before === undefined) return this.#say("There is nothing to take back.");
    this.#keep(before);
    this.#say("Taken back.");
  }

  #keep(spans) {
    this.#rows.write(rowsOf(spans));
    this.#take(spans);
  }

  #take(spans) {
    this.#spans = spans;
    this.#anchor = null;
    this.#form.querySelector("[data-unsaved]").hidden = false;
    this.#show();
  }

  #paintBlock(block) {
    let spans = this.#spans;
    for (let day = block.first.day; day <= block.last.day; day += 1) {
      const [first] = span(day, block.first.slot);
      const [, last] = span(day, block.last.slot);
      spans = painted(spans, first, last, block.on);
    }
    this.#paint(spans, `${blockWords(block)}: ${block.on ? "on" : "off"}.`);
  }

  #isOn({ day, slot }) {
    return covered(this.#spans, ...span(day, slot)) > 0;
  }

  // ---- finger and mouse

  #press(event) {
    const place = this.#placeOf(event);
    if (!event.isPrimary || event.button !== 0 || place === null) return;
    this.#anchor = place;
    this.#stroke = { pointerId: event.pointerId, x: event.clientX, on: !this.#isOn(place), painting: event.pointerType !== "touch" };
    if (this.#stroke.painting) {
      event.preventDefault(); // no text is marked
      this.#grid.setPointerCapture(event.pointerId);
      this.#preview(place);
    }
  }

  #move(event) {
    const stroke = this.#stroke;
    if (stroke?.pointerId !== event.pointerId) return;
    if (!stroke.painting && Math.abs(event.clientX - stroke.x) < SIDEWAYS_PX) return;
    if (!stroke.painting) this.#grid.setPointerCapture(event.pointerId);
    stroke.painting = true;
    this.#preview(this.#placeOf(event, { clamped: true }));
  }

  #lift(event) {
    const stroke = this.#stroke;
    if (stroke?.pointerId !== event.pointerId) return;
    const place = stroke.painting ? this.#placeOf(event, { clamped: true }) : this.#anchor;
    this.#stroke = null;
    this.#focus = place;
    this.#paintBlock({ ...block(this.#anchor, place), on: stroke.on });
  }

  // The browser scrolls instead.
  #drop() {
    this.#stroke = null;
    this.#anchor = null;
    this.#say("");
    this.#show();
  }

  #preview(place) {
    if (samePlace(place, this.#stroke.at)) return;
    this.#stroke.at = place;
    const chosen = { ...block(this.#anchor, place), on: this.#stroke.on };
    this.#say(`${blockWords(chosen)}: ${chosen.on ? "on" : "off"}`);
    this.#show(chosen);
  }

  #placeOf(event, { clamped = false } = {}) {
    const top = this.#cells[0][0].getBoundingClientRect();
    const bottom = this.#cells[6][SLOTS - 1].getBoundingClientRect();
    const slot = Math.floor(((event.clientX - top.left) / (bottom.right - top.left)) * SLOTS);
    const day = Math.floor(((event.clientY - top.top) / (bottom.bottom - top.top)) * 7);
    const inside = slot >= 0 && slot < SLOTS && day >= 0 && day < 7;
    if (!inside && !clamped) return null;
    return { day: clamp(day, 6), slot: clamp(slot, SLOTS - 1) };
  }

  // ---- keyboard, as ARIA's pattern for grids has it

  #key(event) {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z") {
      event.preventDefault();
      return this.#undo();
    }
    const place = this.#placeAfter(event);
    if (place !== null) this.#go(place, event.shiftKey);
    else if (event.key === " " || event.key === "Enter") this.#turn();
    else if (event.key === "Escape" && this.#anchor !== null) this.#go(this.#focus, false);
    else return undefined;
    return event.preventDefault();
  }

  #placeAfter(event) {
    const { day, slot } = this.#focus;
    if (event.ctrlKey || event.metaKey || event.altKey) return null;
    const step = STEPS[event.key];
    if (step) return { day: clamp(day + step[0], 6), slot: clamp(slot + step[1], SLOTS - 1) };
    if (event.key === "Home") return { day, slot: 0 };
    if (event.key === "End") return { day, slot: SLOTS - 1 };
    if (event.key === "PageUp") return { day: 0, slot };
    if (event.key === "PageDown") return { day: 6, slot };
    return null;
  }

  #go(place, extend) {
    this.#anchor = extend ? (this.#anchor ?? this.#focus) : null;
    this.#focus = place;
    const chosen = this.#chosen();
    this.#say(extend ? `${blockWords(chosen)} chosen; space turns it ${chosen.on ? "on" : "off"}.` : "");
    this.#show(extend ? chosen : null);
    this.#cells[place.day][place.slot].focus();
  }

  #turn() {
    this.#paintBlock(this.#chosen());
    this.#cells[this.#focus.day][this.#focus.slot].focus();
  }

  #chosen() {
    const from = this.#anchor ?? this.#focus;
    return { ...block(from, this.#focus), on: !this.#isOn(from) };
  }
}

function hours() {
  const row = element("div", { class: "week-hours", "aria-hidden": "true" });
  row.append(element("span", {}, ""));
  const marks = element("div", { class: "week-slots" });
  for (let hour = 0; hour < 24; hour += 4) marks.append(element("span", {}, String(hour).padStart(2, "0")));
  row.append(marks);
  return row;
}

function element(tag, attributes, text = "") {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
}

function span(day, slot) {
  const first = day * DAY_MIN + slot * SLOT_MIN;
  return [first, first + SLOT_MIN];
}

function block(a, b) {
  return {
    first: { day: Math.min(a.day, b.day), slot: Math.min(a.slot, b.slot) },
    last: { day: Math.max(a.day, b.day), slot: Math.max(a.slot, b.slot) },
  };
}

function samePlace(a, b) {
  return a?.day === b?.day && a?.slot === b?.slot;
}

function within({ first, last }, day, slot) {
  return day >= first.day && day <= last.day && slot >= first.slot && slot <= last.slot;
}

function blockWords({ first, last }) {
  const days = first.day === last.day ? DAYS[first.day] : `${DAYS[first.day]} to ${DAYS[last.day]}`;
  return `${days}, ${clock(first.slot)} to ${clock(last.slot + 1)}`;
}

function clock(slot) {
  return `${String(Math.floor(slot / 2)).padStart(2, "0")}:${slot % 2 ? "30" : "00"}`;
}

function clamp(number, most) {
  return Math.max(0, Math.min(most, number));
}
