// Whether this browser can be a device at all, for people to read; and what kind of thing it is.

// What a device needs: [name, codes of what may be missing], the codes those of worker/probe.js and two of the page's.
const NEEDS = [
  ["A secure connection", ["insecure", "crypto"]],
  ["Work beside the page (Web Workers)", ["worker"]],
  ["A GPU for web pages (WebGPU)", ["webgpu", "gpu"]],
  ["A key of its own (Ed25519)", ["ed25519"]],
  ["A place to keep it (IndexedDB)", ["indexeddb"]],
  ["A line to the site (WebSocket)", ["websocket"]],
  ["One tab at a time (Web Locks)", ["locks"]],
];

// [{name, code, ok}] of every need, `code` being what is missing. `worker` is a PhoneWorker.
export async function browserChecks(worker) {
  const missing = new Set(await missingCodes(worker));
  return NEEDS.map(([name, codes]) => {
    const code = codes.find((one) => missing.has(one)) ?? null;
    return { name, code, ok: code === null };
  });
}

async function missingCodes(worker) {
  if (!isSecureContext) return ["insecure"];
  if (typeof Worker !== "function") return ["worker"];
  return worker.probe().then(
    ({ missing }) => missing,
    () => ["worker"],
  );
}

export async function deviceDescription() {
  const agent = navigator.userAgent;
  const model = await navigator.userAgentData?.getHighEntropyValues?.(["model"]).then(
    (values) => values.model,
    () => "",
  );
  return describeAgent({ agent, model: model ?? "", touchPoints: navigator.maxTouchPoints });
}

// Pure: {kind, name} of a browser's own words, the name as its owner might give it.
export function describeAgent({ agent, model, touchPoints }) {
  if (/iPhone/.test(agent)) return { kind: "phone", name: "iPhone" };
  // An iPad says it is a Mac; no Mac has a touch screen.
  if (/iPad/.test(agent) || (/Macintosh/.test(agent) && touchPoints > 1)) return { kind: "tablet", name: "iPad" };
  if (/Android/.test(agent)) {
    const kind = /Mobile/.test(agent) ? "phone" : "tablet";
    return { kind, name: model || `Android ${kind}` };
  }
  const systems = [
    ["Macintosh", "Mac"],
    ["CrOS", "Chromebook"],
    ["Windows", "Windows computer"],
  ];
  return { kind: "laptop", name: systems.find(([word]) => agent.includes(word))?.[1] ?? "Computer" };
}

// iOS keeps the data of a home-screen app apart from Safari's, and deletes Safari's after a week without a visit.
export const isApple = ({ name }) => name === "iPhone" || name === "iPad";

export const isInstalled = () =>
  navigator.standalone === true || matchMedia("(display-mode: standalone), (display-mode: fullscreen)").matches;
