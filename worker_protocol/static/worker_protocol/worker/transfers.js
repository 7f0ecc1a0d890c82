// What downloads and uploads share: tries until patience runs out, and requests that cannot hang for ever.

import { LeaseFailed } from "./errors.js";
import { backoffMs, pause, steadyMs } from "./waiting.js";

const BACKOFF_BASE_MS = 500;
const BACKOFF_CAP_MS = 10_000;
const TRY_AGAIN_STATUSES = [408, 416, 429];

// A try has failed in a way that another may not.
export class TryAgain extends Error {}

// The result of the first try that succeeds. After `patienceMs` of trying the lease fails as `data_unavailable`.
export async function withRetries(attempt, { what, patienceMs, signal }) {
  const startedMs = steadyMs();
  for (let tried = 0; ; tried += 1) {
    try {
      return await attempt();
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof TryAgain)) throw error;
      const waitMs = backoffMs(tried, { baseMs: BACKOFF_BASE_MS, capMs: BACKOFF_CAP_MS });
      if (steadyMs() + waitMs - startedMs > patienceMs) {
        throw new LeaseFailed("data_unavailable", `${what}: ${error.message}`);
      }
      await pause(waitMs, { signal, wakesOnline: true });
    }
  }
}

// Runs `work(request, alive)`: `request` is fetch with this transfer's signal, `alive` puts the deadline off. A
// network error, or `stallMs` without a sign of life (as after a change of network), is a TryAgain.
export async function transfer(work, { stallMs, signal }) {
  const stalled = new AbortController();
  let timer;
  const alive = () => {
    clearTimeout(timer);
    timer = setTimeout(() => stalled.abort(), stallMs);
  };
  const either = signal ? AbortSignal.any([signal, stalled.signal]) : stalled.signal;
  const request = (url, options) =>
    fetch(url, { ...options, signal: either, credentials: "omit", cache: "no-store" });
  alive();
  try {
    return await work(request, alive);
  } catch (error) {
    signal?.throwIfAborted();
    if (stalled.signal.aborted) throw new TryAgain("the connection went silent");
    // fetch tells of every network trouble, and of a body cut short, by a TypeError.
    if (error instanceof TypeError) throw new TryAgain("the connection broke");
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

// What a refusing answer means: trouble of the moment, or the end of it.
export function problem({ status }) {
  const message = `the server answered ${status}`;
  const passes = TRY_AGAIN_STATUSES.includes(status) || status >= 500;
  return passes ? new TryAgain(message) : new LeaseFailed("data_unavailable", message);
}

export async function sha256Hex(bytes) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
