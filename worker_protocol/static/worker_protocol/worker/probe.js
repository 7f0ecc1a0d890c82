// What this browser can do, and what it lacks. Nothing here needs a pairing.

import { KernelError } from "../runtime/errors.js";
import { openGpu } from "../runtime/gpu.js";
import { adapterInfo, variantFor } from "./machine.js";

const INFO = ["vendor", "architecture", "device", "description"];
const LIMITS = ["maxBufferSize", "maxStorageBufferBindingSize", "maxComputeInvocationsPerWorkgroup"];
// What each class of GPU is called by the site until a benchmark says more.
const CLASSES = { cpu: "laptop-cpu", phone: "phone-entry", desktop: "laptop-gpu" };

// {adapter, limits, features, timestamps, variant, deviceClass, missing}. `missing` lists what a device cannot
// do without: webgpu, gpu (no adapter, or it does not open), ed25519, indexeddb, websocket, locks, crypto;
// nulls stand for what is unknown because of that.
export async function probe() {
  const missing = [];
  if (!globalThis.WebSocket) missing.push("websocket");
  if (!navigator.locks) missing.push("locks");
  if (!globalThis.crypto?.subtle) missing.push("crypto");
  else if (!(await hasEd25519())) missing.push("ed25519");
  if (!(await hasDatabase())) missing.push("indexeddb");
  const unknown = { adapter: null, limits: null, features: [], timestamps: false, variant: null, deviceClass: null };
  if (!navigator.gpu) return { ...unknown, missing: [...missing, "webgpu"] };
  try {
    return { ...(await probeGpu()), missing };
  } catch (error) {
    if (!(error instanceof KernelError)) throw error;
    return { ...unknown, missing: [...missing, "gpu"] };
  }
}

async function probeGpu() {
  const gpu = await openGpu();
  try {
    const { limits, features } = gpu.device;
    const info = gpu.device.adapterInfo ?? (await adapterInfo());
    const variant = variantFor(info, navigator.userAgent);
    return {
      adapter: Object.fromEntries(INFO.map((name) => [name, info[name] ?? ""])),
      limits: Object.fromEntries(LIMITS.map((name) => [name, limits[name]])),
      features: [...features].sort(),
      timestamps: features.has("timestamp-query"),
      variant,
      deviceClass: CLASSES[variant],
    };
  } finally {
    gpu.close();
  }
}

async function hasEd25519() {
  try {
    await crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"]);
    return true;
  } catch {
    return false;
  }
}

async function hasDatabase() {
  return new Promise((resolve) => {
    try {
      const opened = indexedDB.open("nightshift probe");
      opened.onsuccess = () => {
        opened.result.close();
        indexedDB.deleteDatabase("nightshift probe");
        resolve(true);
      };
      opened.onerror = () => resolve(false);
    } catch {
      resolve(false);
    }
  });
}
