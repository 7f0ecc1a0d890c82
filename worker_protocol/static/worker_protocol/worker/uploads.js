// Sends a delta in parts; a repeated or interrupted upload goes on where it stopped: "Uploading" in docs/protocol.md.

import { problem, transfer, TryAgain, withRetries } from "./transfers.js";

// One request's part: what a dropped connection can cost.
const PART_BYTES = 2 ** 20;
const STALL_MS = 60_000;

// Throws LeaseFailed `data_unavailable` when the server does not take it within `patienceMs`, or the signal's reason.
export async function upload(url, bytes, sha256, { patienceMs, signal = null }) {
  let interrupted = false;
  const attempt = async () => {
    const asks = interrupted || bytes.length > PART_BYTES;
    interrupted = true;
    await send(url, bytes, sha256, asks, signal);
  };
  await withRetries(attempt, { what: "upload of the delta", patienceMs, signal });
}

// The server says after each part what it lacks.
async function send(url, bytes, sha256, asks, signal) {
  let offset = asks ? await offsetAt(url, bytes.length, signal) : 0;
  // All parts, and a few answers to start elsewhere.
  const mostRequests = 2 * Math.ceil(bytes.length / PART_BYTES) + 4;
  for (let sent = 0; sent < mostRequests; sent += 1) {
    const response = await put(url, bytes, sha256, offset, signal);
    if (response.status === 201) return;
    if (response.status !== 202 && response.status !== 409) throw problem(response);
    offset = offsetIn(response, bytes.length);
  }
  throw new TryAgain("the server asks for the same part again and again");
}

function put(url, bytes, sha256, offset, signal) {
  const end = Math.min(offset + PART_BYTES, bytes.length);
  const headers = { "Content-Type": "application/octet-stream", "X-Content-SHA256": sha256 };
  if (end - offset < bytes.length) headers["Content-Range"] = `bytes ${offset}-${end - 1}/${bytes.length}`;
  const options = { method: "PUT", headers, body: bytes.subarray(offset, end) };
  return transfer((request) => request(url, options), { stallMs: STALL_MS, signal });
}

async function offsetAt(url, sizeBytes, signal) {
  const response = await transfer((request) => request(url, { method: "HEAD" }), { stallMs: STALL_MS, signal });
  if (!response.ok) throw problem(response);
  const offset = Number(response.headers.get("Upload-Offset") ?? 0);
  return offset < sizeBytes ? offset : 0; // all of it has arrived but for our being told
}

function offsetIn(response, sizeBytes) {
  const offset = response.headers.get("Upload-Offset") ?? "";
  if (!/^\d+$/.test(offset) || Number(offset) >= sizeBytes) {
    throw new TryAgain(`the server answered ${response.status} without saying where to go on`);
  }
  return Number(offset);
}
