// Blobs by hash: kept within a part of the browser's quota, fetched where they are missing, checked before use.
// Nothing that is stored is trusted: a read checks the hash.

import { recordDelete, recordsRead, recordWrite } from "./database.js";
import { LeaseFailed } from "./errors.js";
import { openStore } from "./stores.js";
import { problem, sha256Hex, transfer, TryAgain, withRetries } from "./transfers.js";

const RECORDS = "blobs";
// How much of what the browser grants is used, and how much at most.
const QUOTA_PART = 0.5;
const MAX_KEPT_BYTES = 2 * 2 ** 30;
const UNKNOWN_QUOTA_BYTES = 256 * 2 ** 20;
// What a tab that is killed can lose of a download.
const STORED_PART_BYTES = 2 ** 20;
const STALL_MS = 20_000;

export class Blobs {
  #store;
  #entries; // by hash: {sizeBytes, usedMs, whole}
  #full = false;

  static async open(store = null) {
    const opened = store ?? (await openStore());
    const known = new Map(await recordsRead(RECORDS).catch(() => []));
    for (const name of await opened.names()) {
      if (!known.has(name)) await opened.remove(name); // its record was lost, so nobody knows what it is
    }
    return new Blobs(opened, known);
  }

  constructor(store, entries) {
    this.#store = store;
    this.#entries = entries;
  }

  // Whether the browser's storage was full when last written to; work goes on without keeping blobs.
  get isFull() {
    return this.#full;
  }

  // Hashes of whole blobs, the most recently used first.
  held(limit) {
    return [...this.#entries]
      .filter(([, entry]) => entry.whole)
      .sort(([, one], [, other]) => other.usedMs - one.usedMs)
      .slice(0, limit)
      .map(([sha256]) => sha256);
  }

  // The bytes of a lease's blob {sha256, size_bytes, url}, checked. Throws LeaseFailed `data_unavailable` when they
  // cannot be had within `patienceMs`, or the signal's reason.
  async fetch(blob, { patienceMs, signal = null }) {
    const kept = await this.#beginning(blob);
    const download = new Download(blob, kept);
    if (!(await download.isRight())) {
      if (download.filled === blob.size_bytes) download.restart(); // whole, but spoilt
      const what = `download of blob ${blob.sha256.slice(0, 12)}`;
      await withRetries(() => this.#continue(download, signal), { what, patienceMs, signal });
    }
    if (download.stored === blob.size_bytes) {
      await this.#note(blob.sha256, { sizeBytes: blob.size_bytes, whole: true });
    }
    return download.bytes;
  }

  async #continue(download, signal) {
    await transfer((request, alive) => this.#receive(download, request, alive), { stallMs: STALL_MS, signal });
    if (await download.isRight()) return;
    await this.#forget(download.blob.sha256);
    download.restart();
    throw new TryAgain("the bytes do not have the hash that was promised");
  }

  async #receive(download, request, alive) {
    const { blob } = download;
    const headers = download.filled > 0 ? { Range: `bytes=${download.filled}-` } : {};
    const response = await request(blob.url, { headers });
    // The whole, whatever was asked; or what is here is no beginning of it.
    if (response.status === 200 || response.status === 416) download.restart();
    if (!response.ok) throw problem(response);
    try {
      for await (const chunk of chunksOf(response.body)) {
        alive();
        download.add(chunk);
        if (download.unstoredBytes >= STORED_PART_BYTES) await this.#keep(download);
      }
    } finally {
      if (download.unstoredBytes > 0) await this.#keep(download);
    }
    if (download.filled < blob.size_bytes) {
      throw new TryAgain(`it ended after ${download.filled} of ${blob.size_bytes} bytes`);
    }
  }

  // What lies here of a blob: all of it, a beginning, or nothing.
  async #beginning({ sha256 }) {
    if (!this.#entries.has(sha256)) return null;
    try {
      return await this.#store.read(sha256);
    } catch {
      return null; // a file that cannot be read is fetched anew
    }
  }

  // Put what has arrived where it outlives the tab. Full storage costs the cache, not the lease.
  async #keep(download) {
    const { sha256, size_bytes: wantedBytes } = download.blob;
    if (!download.isKept) return;
    try {
      if (download.stored === 0) await this.#makeRoom(sha256, wantedBytes);
      await this.#store.append(sha256, download.stored, download.unstored());
      download.stored = download.filled;
      this.#full = false;
      await this.#note(sha256, { sizeBytes: download.stored, whole: false });
    } catch {
      this.#full = true;
      download.isKept = false;
      await this.#forget(sha256);
    }
  }

  // Drop what was used longest ago until `wantedBytes` more fit.
  async #makeRoom(sha256, wantedBytes) {
    const oldest = [...this.#entries].sort(([, one], [, other]) => one.usedMs - other.usedMs);
    let keptBytes = oldest.reduce((sum, [, entry]) => sum + entry.sizeBytes, 0);
    const budgetBytes = await budget(keptBytes);
    if (wantedBytes > budgetBytes) throw new DOMException("A blob is larger than the budget.", "QuotaExceededError");
    for (const [name, entry] of oldest) {
      if (keptBytes + wantedBytes <= budgetBytes) return;
      if (name === sha256) continue;
      keptBytes -= entry.sizeBytes;
      await this.#forget(name);
    }
  }

  async #note(sha256, { sizeBytes, whole }) {
    const entry = { sizeBytes, whole, usedMs: Date.now() };
    this.#entries.set(sha256, entry);
    await recordWrite(RECORDS, sha256, entry).catch(() => {}); // without records the cache lasts as long as the tab
  }

  async #forget(sha256) {
    this.#entries.delete(sha256);
    await this.#store.remove(sha256).catch(() => {});
    await recordDelete(RECORDS, sha256).catch(() => {});
  }
}

// One blob on its way: what has arrived, and how much of that is stored.
class Download {
  stored;
  isKept = true;

  constructor(blob, kept) {
    this.blob = blob;
    this.bytes = new Uint8Array(blob.size_bytes);
    const usable = kept !== null && kept.length <= blob.size_bytes;
    if (usable) this.bytes.set(kept);
    this.filled = usable ? kept.length : 0;
    this.stored = this.filled;
  }

  get unstoredBytes() {
    return this.filled - this.stored;
  }

  unstored() {
    return this.bytes.subarray(this.stored, this.filled);
  }

  add(chunk) {
    if (this.filled + chunk.length > this.blob.size_bytes) {
      throw new LeaseFailed("data_unavailable", "a blob is longer than its lease says");
    }
    this.bytes.set(chunk, this.filled);
    this.filled += chunk.length;
  }

  restart() {
    this.filled = 0;
    this.stored = 0;
  }

  async isRight() {
    return this.filled === this.blob.size_bytes && (await sha256Hex(this.bytes)) === this.blob.sha256;
  }
}

// Safari's streams cannot be iterated over.
async function* chunksOf(stream) {
  const reader = stream.getReader();
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) yield part.value;
  } finally {
    reader.cancel().catch(() => {});
  }
}

async function budget(keptBytes) {
  const { quota = UNKNOWN_QUOTA_BYTES, usage = keptBytes } = (await navigator.storage?.estimate?.()) ?? {};
  return Math.min(MAX_KEPT_BYTES, QUOTA_PART * Math.max(0, quota - usage + keptBytes));
}
