// A page in the place of the phone app's: it pairs, starts workers, and remembers what they told.

import { identityCreate, identityForget, identityLoad, identitySave } from "/static/worker_protocol/worker/keys.js";
import { recordsRead } from "/static/worker_protocol/worker/database.js";
import { Machine } from "/static/worker_protocol/worker/machine.js";
import { proofWrite } from "/static/worker_protocol/worker/proof.js";

const workers = new Map(); // by a name of the test's: {worker, told}

globalThis.night = {
  pair: async (code, { server = location.origin } = {}) => {
    const { keys, publicKey } = await identityCreate();
    const response = await fetch(`${server}/api/devices/pair/`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({
        code,
        public_key: publicKey,
        name: "Test phone",
        kind: "phone",
        device_class: "laptop-cpu",
        speed_factor: 0.25,
      }),
    });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.message);
    await identitySave({ keys, deviceId: answer.device_id, server, name: "Test phone" });
    return answer.device_id;
  },

  // Become a device that was paired elsewhere, whose key the test knows.
  become: async ({ deviceId, server, pkcs8Hex }) => {
    const bytes = Uint8Array.from(pkcs8Hex.match(/../g), (pair) => Number.parseInt(pair, 16));
    const privateKey = await crypto.subtle.importKey("pkcs8", bytes, "Ed25519", false, ["sign"]);
    await identitySave({ keys: { privateKey }, deviceId, server, name: "Known phone" });
  },

  // As if the self-test had been passed here before.
  trust: async () => {
    const machine = new Machine();
    const browser = await machine.browserName();
    machine.close();
    await proofWrite({ ok: true, failed: [], cases: [], manifest: "", browser });
  },

  keptBytes: async () => (await recordsRead("blobs")).reduce((sum, [, { sizeBytes }]) => sum + sizeBytes, 0),

  keptReports: async () => (await recordsRead("reports")).length,

  identity: async () => {
    const { keys, ...known } = await identityLoad();
    return { ...known, extractable: keys.privateKey.extractable };
  },
  forget: identityForget,

  open: (name) => {
    const worker = new Worker("/static/worker_protocol/worker/main.js", { type: "module" });
    const told = [];
    worker.onmessage = ({ data }) => told.push({ ...data, atMs: performance.now() });
    worker.onerror = ({ message }) => told.push({ type: "failure", message });
    workers.set(name, { worker, told });
  },
  tell: (name, message) => workers.get(name).worker.postMessage(message),
  kill: (name) => workers.get(name).worker.terminate(),
  told: (name, type = "state") => workers.get(name).told.filter((message) => message.type === type),
  last: (name, type = "state") => workers.get(name).told.findLast((message) => message.type === type) ?? null,
  failures: () => [...workers.values()].flatMap(({ told }) => told.filter(({ type }) => type === "failure")),
};
