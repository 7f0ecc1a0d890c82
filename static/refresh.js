// Keeps a part of a page up to date: fetches it anew and swaps it in, as long as it says that it is live.
//
// Markup: <div id="..." data-refresh="/address/of/the/part/"><div data-live>…</div></div>. Without script the page
// still works; it only does not move by itself. Open <details>, the focus and the scroll position stay as they are.

const PAUSE_MS = 2000;
const PAUSE_AFTER_ERROR_MS = 10000;

for (const part of document.querySelectorAll("[data-refresh]")) keepUpToDate(part);

async function keepUpToDate(part) {
  let shown = "";
  while (part.querySelector("[data-live]")) {
    await pause(PAUSE_MS);
    await untilVisible();
    try {
      const response = await fetch(part.dataset.refresh, { headers: { Accept: "text/html" } });
      if (response.redirected) return location.reload(); // logged out meanwhile
      if (!response.ok) throw new Error(`HTTP ${response.status}`);
      const html = await response.text();
      const comparable = withoutTokens(html);
      if (comparable !== shown) swap(part, html);
      shown = comparable;
    } catch {
      await pause(PAUSE_AFTER_ERROR_MS); // the server is away; what is shown is the last that is known
    }
  }
}

function swap(part, html) {
  const open = [...part.querySelectorAll("details[open][id]")].map((details) => details.id);
  const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
  const { scrollX, scrollY } = window;
  part.replaceChildren(...new DOMParser().parseFromString(html, "text/html").body.childNodes);
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  window.scrollTo(scrollX, scrollY);
}

// Each answer carries a fresh anti-forgery token, which is no news.
function withoutTokens(html) {
  return html.replace(/name="csrfmiddlewaretoken" value="[^"]*"/g, "");
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function untilVisible() {
  if (!document.hidden) return undefined;
  return new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
}
