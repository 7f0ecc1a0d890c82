// Keeps the app's shell, so that it opens without a network: the files that `self.shell` names (written in front of
// this by the site) and nothing else; no answer of the API and no blob is ever kept. A version is kept as a whole or
// not at all, and takes over when the page says so, never in the middle of a night.

const PREFIX = "nightshift-shell-";
const NAME = PREFIX + self.shell.version;
const KEPT = new Set(self.shell.addresses);

self.addEventListener("install", (event) => event.waitUntil(keepShell()));

self.addEventListener("activate", (event) => event.waitUntil(takeOver()));

self.addEventListener("message", ({ data }) => {
  if (data?.type === "take_over") self.skipWaiting();
});

self.addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  const { origin, pathname } = new URL(url);
  if (method === "GET" && origin === self.location.origin && KEPT.has(pathname)) {
    event.respondWith(fromShell(event.request, pathname));
  }
});

async function keepShell() {
  const cache = await caches.open(NAME);
  // Past the browser's own cache, which may hold files of the version before.
  await cache.addAll([...KEPT].map((address) => new Request(address, { cache: "reload" })));
}

async function takeOver() {
  const others = (await caches.keys()).filter((name) => name.startsWith(PREFIX) && name !== NAME);
  await Promise.all(others.map((name) => caches.delete(name)));
  await self.clients.claim();
}

async function fromShell(request, pathname) {
  const cache = await caches.open(NAME);
  return (await cache.match(pathname)) ?? fetch(request);
}
