// Whether this browser can be a device at all, asked without opening the GPU: codes of what is missing.

// The checks in the order they are shown: [name, code of what is missing, test].
export const CHECKS = [
  ["A secure connection", "insecure", () => isSecureContext],
  ["A GPU for web pages (WebGPU)", "no_webgpu", () => Boolean(navigator.gpu)],
  ["A key of its own (Ed25519)", "no_ed25519", hasEd25519],
  ["A place to keep it (IndexedDB)", "no_indexeddb", hasIndexedDb],
  ["Work beside the page (Web Workers)", "no_worker", () => typeof Worker === "function"],
  ["One tab at a time (Web Locks)", "no_locks", () => Boolean(navigator.locks)],
];

// [{name, code, ok}] of every check; a check that throws has failed.
export async function browserChecks() {
  return Promise.all(
    CHECKS.map(async ([name, code, test]) => {
      const ok = await Promise.resolve()
        .then(test)
        .catch(() => false);
      return { name, code, ok };
    }),
  );
}

async function hasEd25519() {
  await crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"]);
  return true;
}

// Private tabs of some browsers have IndexedDB and refuse to open it.
function hasIndexedDb() {
  return new Promise((resolve) => {
    const request = indexedDB.open("nightshift-probe");
    request.onsuccess = () => {
      request.result.close();
      indexedDB.deleteDatabase("nightshift-probe");
      resolve(true);
    };
    request.onerror = () => resolve(false);
    request.onblocked = () => resolve(false);
  });
}

// What kind of thing this is, and a name that its owner would give it.
export async function deviceDescription() {
  const agent = navigator.userAgent;
  const model = await navigator.userAgentData?.getHighEntropyValues?.(["model"]).then(
    (values) => values.model,
    () => "",
  );
  return describeAgent({ agent, model: model ?? "", touchPoints: navigator.maxTouchPoints });
}

// Pure: {kind, name} of a browser's own words.
export function describeAgent({ agent, model, touchPoints }) {
  if (/iPhone/.test(agent)) return { kind: "phone", name: "iPhone" };
  // An iPad says it is a Mac; no Mac has a touch screen.
  if (/iPad/.test(agent) || (/Macintosh/.test(agent) && touchPoints > 1)) return { kind: "tablet", name: "iPad" };
  if (/Android/.test(agent)) {
    const kind = /Mobile/.test(agent) ? "phone" : "tablet";
    return { kind, name: model || (kind === "phone" ? "Android phone" : "Android tablet") };
  }
  const system = [["Macintosh", "Mac"], ["CrOS", "Chromebook"], ["Windows", "Windows computer"]].find(([word]) =>
    agent.includes(word),
  );
  return { kind: "laptop", name: system ? system[1] : "Computer" };
}

// iOS keeps the data of a home-screen app apart from Safari's, and deletes Safari's after a week without a visit.
export const isApple = ({ kind, name }) => name === "iPhone" || (kind === "tablet" && name === "iPad");

export const isInstalled = () =>
  navigator.standalone === true || matchMedia("(display-mode: standalone), (display-mode: fullscreen)").matches;
