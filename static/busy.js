// Says that a form which takes its time is on its way, and sends it once.
//
// Markup: <form data-busy="What is being done">…<button>…</button></form>. Without script the form still works; it
// only says nothing meanwhile.

for (const form of document.querySelectorAll("form[data-busy]")) watch(form);

function watch(form) {
  const status = Object.assign(document.createElement("p"), { className: "busy", hidden: true });
  status.setAttribute("role", "status");
  form.append(status);
  let clock = null;

  form.addEventListener("submit", (event) => {
    if (clock !== null) return event.preventDefault(); // an impatient second press
    const began = performance.now();
    const show = () => (status.lastChild.data = seconds(performance.now() - began));
    status.replaceChildren(document.createElement("progress"), `${form.dataset.busy}… `, "");
    status.hidden = false;
    clock = setInterval(show, 1000);
    for (const button of buttons(form)) button.setAttribute("aria-disabled", "true");
  });

  // A page that the browser kept is shown again as it was left.
  addEventListener("pageshow", () => {
    clearInterval(clock);
    clock = null;
    status.hidden = true;
    for (const button of buttons(form)) button.removeAttribute("aria-disabled");
  });
}

function buttons(form) {
  return form.querySelectorAll("button");
}

function seconds(ms) {
  return `${Math.round(ms / 1000)} s`;
}
