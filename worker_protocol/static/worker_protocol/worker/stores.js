// Where blobs lie: files of the origin's private file system, else entries of Cache Storage, else memory. All three
// have one interface; names are hashes, and bytes are appended at an offset, so that the beginning of a blob outlives
// the tab that was fetching it.

const FOLDER = "blobs";
const CACHE = "nightshift-blobs";
// How long a file may stay locked by a worker that is being ended.
const LOCKED_TRIES = 10;
const LOCKED_WAIT_MS = 50;

export async function openStore() {
  for (const Store of [FileStore, CacheStore]) {
    try {
      return await Store.open();
    } catch {
      // Missing in this browser, or refused in a private window; the next one may do.
    }
  }
  return new MemoryStore();
}

export class FileStore {
  #folder;

  static async open() {
    const root = await navigator.storage.getDirectory();
    if (!("createSyncAccessHandle" in FileSystemFileHandle.prototype)) throw new TypeError("no file handles");
    return new FileStore(await root.getDirectoryHandle(FOLDER, { create: true }));
  }

  constructor(folder) {
    this.#folder = folder;
  }

  // The stored bytes, or null.
  async read(name) {
    const file = await this.#file(name, { create: false });
    return file && new Uint8Array(await (await file.getFile()).arrayBuffer());
  }

  // Write `bytes` at `offset`; what was there from then on is gone. Throws QuotaExceededError.
  async append(name, offset, bytes) {
    const handle = await lockedOpen(await this.#file(name, { create: true }));
    try {
      handle.truncate(offset);
      const written = handle.write(bytes, { at: offset });
      handle.flush();
      if (written < bytes.length) throw new DOMException("The disk is full.", "QuotaExceededError");
    } finally {
      handle.close();
    }
  }

  async remove(name) {
    try {
      await this.#folder.removeEntry(name);
    } catch (error) {
      if (error.name !== "NotFoundError") throw error;
    }
  }

  async names() {
    const names = [];
    for await (const name of this.#folder.keys()) names.push(name);
    return names;
  }

  async #file(name, options) {
    try {
      return await this.#folder.getFileHandle(name, options);
    } catch (error) {
      if (error.name === "NotFoundError") return null;
      throw error;
    }
  }
}

async function lockedOpen(file) {
  for (let tries = 1; ; tries += 1) {
    try {
      return await file.createSyncAccessHandle();
    } catch (error) {
      if (error.name !== "NoModificationAllowedError" || tries === LOCKED_TRIES) throw error;
      await new Promise((resolve) => setTimeout(resolve, LOCKED_WAIT_MS));
    }
  }
}

// Parts are entries at `/nightshift-blobs/<name>/<first byte>-<end>`.
export class CacheStore {
  #cache;

  static async open() {
    return new CacheStore(await caches.open(CACHE));
  }

  constructor(cache) {
    this.#cache = cache;
  }

  async read(name) {
    const parts = await this.#parts(name);
    if (parts.length === 0) return null;
    const bytes = new Uint8Array(parts.at(-1).end);
    for (const { url, first } of parts) {
      bytes.set(new Uint8Array(await (await this.#cache.match(url)).arrayBuffer()), first);
    }
    return bytes;
  }

  async append(name, offset, bytes) {
    for (const { url, first } of await this.#parts(name)) {
      if (first >= offset) await this.#cache.delete(url);
    }
    await this.#cache.put(`/${CACHE}/${name}/${offset}-${offset + bytes.length}`, new Response(bytes));
  }

  async remove(name) {
    for (const { url } of await this.#parts(name)) await this.#cache.delete(url);
  }

  async names() {
    const urls = (await this.#cache.keys()).map(({ url }) => url.split("/").at(-2));
    return [...new Set(urls)];
  }

  // In order, without gaps: what lies behind one is of no use.
  async #parts(name) {
    const found = (await this.#cache.keys())
      .map(({ url }) => ({ url, path: new URL(url).pathname.split("/") }))
      .filter(({ path }) => path[2] === name)
      .map(({ url, path }) => {
        const [first, end] = path[3].split("-").map(Number);
        return { url, first, end };
      })
      .sort((one, other) => one.first - other.first);
    const whole = found.findIndex(({ first }, place) => first !== (found[place - 1]?.end ?? 0));
    return whole < 0 ? found : found.slice(0, whole);
  }
}

export class MemoryStore {
  #blobs = new Map();

  async read(name) {
    return this.#blobs.get(name) ?? null;
  }

  async append(name, offset, bytes) {
    const longer = new Uint8Array(offset + bytes.length);
    longer.set(this.#blobs.get(name)?.subarray(0, offset) ?? []);
    longer.set(bytes, offset);
    this.#blobs.set(name, longer);
  }

  async remove(name) {
    this.#blobs.delete(name);
  }

  async names() {
    return [...this.#blobs.keys()];
  }
}
