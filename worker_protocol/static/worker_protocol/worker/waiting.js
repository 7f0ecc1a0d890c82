// Waits: random ones between tries, and ones that can be cut short.

// A random wait before try number `attempt` (the first is 0), anything up to `baseMs * 2^attempt`, capped: full
// jitter, so that a fleet cut off together does not return together.
export function backoffMs(attempt, { baseMs, capMs, random = Math.random }) {
  return random() * Math.min(capMs, baseMs * 2 ** Math.min(attempt, 32));
}

// Resolves after `ms`, or at once when the network comes back and `wakesOnline`. Rejects with the signal's reason.
export function pause(ms, { signal = null, wakesOnline = false } = {}) {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
      if (wakesOnline) globalThis.removeEventListener("online", finish);
    };
    const finish = () => {
      end();
      resolve();
    };
    const stop = () => {
      end();
      reject(signal.reason);
    };
    const timer = setTimeout(finish, ms);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop);
    if (wakesOnline) globalThis.addEventListener("online", finish);
  });
}

export const steadyMs = () => Math.round(performance.now());
