// Adds and removes rows of an idle-windows form. Without script the form has one empty row, and a row is removed by
// taking its days away.

for (const form of document.querySelectorAll("form[data-windows]")) enhance(form);

function enhance(form) {
  const rows = form.querySelector("[data-rows]");
  const total = form.querySelector("input[name$=TOTAL_FORMS]");
  const template = form.querySelector("template");
  const add = form.querySelector("[data-add]");
  add.hidden = false;
  add.addEventListener("click", () => {
    const row = template.content.cloneNode(true);
    renumber(row, total.value);
    total.value = Number(total.value) + 1;
    rows.append(row);
    prepare(rows.lastElementChild);
    rows.lastElementChild.querySelector("input").focus();
  });
  for (const row of rows.children) prepare(row);
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

// A row without days is left out, so a removed row is one whose days are gone; it stays in the form, out of sight.
function prepare(row) {
  const remove = row.querySelector("[data-remove]");
  remove.hidden = false;
  remove.addEventListener("click", () => {
    for (const day of row.querySelectorAll("input[type=checkbox]")) day.checked = false;
    row.hidden = true;
  });
}
