// The idle-windows form. Its rows (days, from, to) are what is sent; this adds and removes rows, and puts the week grid
// over them. Without script the form has one empty row, and a row is removed by taking its days away.

import { WeekGrid } from "./week-grid.js";

function prepared(form) {
  const rows = new WindowRows(form);
  const add = form.querySelector("[data-add]");
  add.hidden = false;
  add.addEventListener("click", () => rows.add().querySelector("input").focus());
  return rows;
}

class WindowRows extends EventTarget {
  #rows;
  #total;
  #template;

  constructor(form) {
    super();
    this.#rows = form.querySelector("[data-rows]");
    this.#total = form.querySelector("input[name$=TOTAL_FORMS]");
    this.#template = form.querySelector("template");
    for (const row of this.#rows.children) this.#prepare(row);
    this.#rows.addEventListener("input", () => this.#tell());
  }

  add() {
    const row = this.#template.content.cloneNode(true);
    renumber(row, this.#total.value);
    this.#total.value = Number(this.#total.value) + 1;
    this.#rows.append(row);
    this.#prepare(this.#rows.lastElementChild);
    return this.#rows.lastElementChild;
  }

  // Rows that are complete, as week.js has them.
  read() {
    return [...this.#rows.children].map(valuesOf).filter(({ days, starts, ends }) => days.length && starts !== null && ends !== null);
  }

  // Fill as many rows as are needed; the others lose their days and go out of sight.
  write(rows) {
    while (this.#rows.children.length < rows.length) this.add();
    [...this.#rows.children].forEach((element, index) => fill(element, rows[index]));
  }

  // A row without days is left out, so a removed row is one whose days are gone; it stays in the form, out of sight.
  #prepare(row) {
    const remove = row.querySelector("[data-remove]");
    remove.hidden = false;
    remove.addEventListener("click", () => {
      fill(row, undefined);
      this.#tell();
    });
  }

  #tell() {
    this.dispatchEvent(new Event("change"));
  }
}

function valuesOf(row) {
  const days = [...row.querySelectorAll("input[type=checkbox]:checked")].map((day) => Number(day.value));
  return { days, starts: minutesOf(field(row, "starts")), ends: minutesOf(field(row, "ends")) };
}

function fill(row, values) {
  for (const day of row.querySelectorAll("input[type=checkbox]")) {
    day.checked = values !== undefined && values.days.includes(Number(day.value));
  }
  row.hidden = values === undefined;
  if (values === undefined) return;
  field(row, "starts").value = clock(values.starts);
  field(row, "ends").value = clock(values.ends);
}

function field(row, name) {
  return row.querySelector(`input[name$="-${name}"]`);
}

function minutesOf(input) {
  const parts = /^(\d\d):(\d\d)/.exec(input.value);
  return parts && Number(parts[1]) * 60 + Number(parts[2]);
}

function clock(minutes) {
  return `${String(Math.floor(minutes / 60)).padStart(2, "0")}:${String(minutes % 60).padStart(2, "0")}`;
}

// Django's formsets call a row that is yet to be numbered "__prefix__".
function renumber(row, number) {
  for (const element of row.querySelectorAll("[name*=__prefix__], [id*=__prefix__], [for*=__prefix__]")) {
    for (const name of ["name", "id", "for"]) {
      const value = element.getAttribute(name);
      if (value) element.setAttribute(name, value.replace("__prefix__", number));
    }
  }
}

for (const form of document.querySelectorAll("form[data-windows]")) new WeekGrid(form, prepared(form));
