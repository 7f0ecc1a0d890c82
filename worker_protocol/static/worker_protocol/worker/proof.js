// Whether this browser's kernels have passed the self-test: asked before work, run anew when the browser, the
// adapter or the site's kernels have changed since.

import { recordRead, recordWrite } from "./database.js";
import { CannotWork } from "./errors.js";
import { sha256Hex } from "./transfers.js";
import { MANIFEST_URL, manifestText, selfTest } from "./trial.js";

const RECORDS = "notes";
const KEY = "self_test";

// Run the self-test and remember what came of it: {ok, failed, cases}.
export async function prove({ machine, blobs, signal = null, url = MANIFEST_URL }) {
  const text = await manifestText(url, signal);
  const outcome = await selfTest({ machine, blobs, signal, url, manifest: JSON.parse(text) });
  const manifest = await sha256Hex(new TextEncoder().encode(text));
  await proofWrite({ ...outcome, manifest, browser: await machine.browserName() });
  return outcome;
}

// Throws CannotWork unless the kernels are right here: `self_test_failed`, or `self_test_unavailable` when they were
// never tested in this browser and the site does not give the test.
export async function requireProof({ machine, blobs, signal, url = MANIFEST_URL, testing = () => {} }) {
  const known = await recordRead(RECORDS, KEY).catch(() => null);
  const isOurs = known !== null && known.browser === (await machine.browserName());
  let outcome = isOurs ? known : null;
  try {
    const manifest = await sha256Hex(new TextEncoder().encode(await manifestText(url, signal)));
    if (outcome?.manifest !== manifest) {
      testing();
      outcome = await prove({ machine, blobs, signal, url });
    }
  } catch (error) {
    // A site out of reach is no reason to doubt kernels that were right before.
    if (!(error instanceof CannotWork) || outcome === null) throw error;
  }
  if (!outcome.ok) {
    const names = outcome.cases.join(", ");
    throw new CannotWork("self_test_failed", `This browser computes wrongly (${names}); update it and try again.`);
  }
}

export async function proofWrite(proof) {
  await recordWrite(RECORDS, KEY, proof).catch(() => {}); // without a database it is proven anew each time
}
