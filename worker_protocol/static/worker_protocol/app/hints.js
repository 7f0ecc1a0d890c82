// What an owner should know of this browser before a night: lines for the home screen.

import { isInstalled } from "./probing.js";
import { sentenceFor } from "./sentences.js";

// Codes of `local` that hold here. Asks for lasting storage on the way, which costs nothing where it is granted.
export async function hintCodes({ sensors }) {
  const codes = [];
  if (!("wakeLock" in navigator)) codes.push("no_wake_lock");
  if (!sensors.tellsBattery) codes.push("blind");
  if (!isInstalled() && !(await storagePersists())) codes.push("storage_not_persistent");
  return codes;
}

export const hintSentences = (codes) => codes.map((code) => sentenceFor("local", code));

async function storagePersists() {
  if (!navigator.storage?.persist) return false;
  return (await navigator.storage.persisted()) || navigator.storage.persist().catch(() => false);
}
