// The one IndexedDB database of the phone app: who this device is, what it has cached, what it has yet to report.

const NAME = "nightshift";
const VERSION = 1;
const STORES = ["identity", "blobs", "reports", "notes"];

let opening = null;

// The value under `key`, or null.
export async function recordRead(store, key) {
  return (await request(store, "readonly", (records) => records.get(key))) ?? null;
}

// All [key, value] pairs of a store.
export async function recordsRead(store) {
  const database = await open();
  return settled(database, store, "readonly", (records) => {
    const [keys, values] = [records.getAllKeys(), records.getAll()];
    return () => keys.result.map((key, place) => [key, values.result[place]]);
  });
}

export async function recordWrite(store, key, value) {
  await request(store, "readwrite", (records) => records.put(value, key));
}

export async function recordDelete(store, key) {
  await request(store, "readwrite", (records) => records.delete(key));
}

async function request(store, mode, make) {
  const database = await open();
  return settled(database, store, mode, (records) => {
    const made = make(records);
    return () => made.result;
  });
}

// The result once the transaction is complete, so that what is written outlives the tab.
function settled(database, store, mode, work) {
  return new Promise((resolve, reject) => {
    const transaction = database.transaction(store, mode);
    const result = work(transaction.objectStore(store));
    transaction.oncomplete = () => resolve(result());
    transaction.onabort = () => reject(transaction.error);
  });
}

function open() {
  opening ??= new Promise((resolve, reject) => {
    const opened = indexedDB.open(NAME, VERSION);
    opened.onupgradeneeded = () => {
      for (const store of STORES) {
        if (!opened.result.objectStoreNames.contains(store)) opened.result.createObjectStore(store);
      }
    };
    opened.onsuccess = () => {
      const database = opened.result;
      // A newer page may need another version, and a browser may close it at any time; the next call opens it anew.
      database.onversionchange = () => {
        database.close();
        opening = null;
      };
      database.onclose = () => {
        opening = null;
      };
      resolve(database);
    };
    opened.onerror = () => {
      opening = null;
      reject(opened.error);
    };
  });
  return opening;
}
