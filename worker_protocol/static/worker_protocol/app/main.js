// The app on the owner's device: puts the parts together and goes from one screen to the next.

import { identityForget, identityLoad } from "../worker/keys.js";
import { codeFromFragment } from "./codes.js";
import { byId, setText, show } from "./dom.js";
import { Enrolment } from "./enrolment.js";
import { Home } from "./home.js";
import { Installation } from "./installation.js";
import { Night } from "./night.js";
import { PhoneWorker } from "./phone-worker.js";
import { Screens } from "./screens.js";
import { anySentenceFor, sentenceFor } from "./sentences.js";
import { Sensors } from "./sensors.js";
import { WakeKeeper } from "./wake.js";
import { clockTime, money } from "./words.js";

const screens = new Screens();
const worker = new PhoneWorker();
const sensors = new Sensors();
const wake = new WakeKeeper();
const installation = new Installation();
const night = new Night({ worker, sensors, wake, screens });
const enrolment = new Enrolment({ screens, worker, onPaired });
const home = new Home({
  screens,
  sensors,
  wake,
  onStart: () => night.start(),
  onAct: { pair: pairAnew, reload: () => location.reload(), devices: () => location.assign("/devices/") },
});

let identity = null;

night.addEventListener("stopped", ({ detail }) => stopped(detail));
night.addEventListener("over", ({ detail }) => over(detail));
byId("again").addEventListener("click", () => home.start());
byId("done").addEventListener("click", () => home.show(identity).then(updateIfFree));
byId("install").addEventListener("click", () => installation.install());
installation.addEventListener("installable", () => show(byId("install"), true));
installation.addEventListener("update", updateIfFree);
for (const name of ["online", "offline"]) addEventListener(name, showNetwork);

showNetwork();
await Promise.all([sensors.open(), begin()]);
// Not needed to work, only to open without a network.
installation.register().catch(() => {});

async function begin() {
  const code = codeFromFragment(location.hash);
  // The code is for once: not for bookmarks, the history or whoever looks at the screen.
  if (location.hash) history.replaceState(null, "", location.pathname);
  identity = await identityLoad().catch(() => null);
  if (identity === null) return enrolment.begin(code);
  const news = code === null ? null : `This browser is paired already, as ${identity.name}; the code is still unused.`;
  return home.show(identity, { news });
}

function onPaired(paired) {
  identity = paired;
  navigator.storage?.persist?.().catch(() => false);
  home.show(identity, { news: "Paired. It is on your Devices page now." });
}

async function pairAnew() {
  worker.end();
  await identityForget();
  identity = null;
  enrolment.begin(null);
}

function stopped({ earnedMicrousd, leasesDone, inTime }) {
  home.keepNight({ earnedMicrousd, leasesDone });
  const forced = inTime ? null : sentenceFor("local", "stop_forced");
  const earned = leasesDone > 0 ? `Earned tonight: ${money(earnedMicrousd)}.` : "";
  const rest = forced ? `${forced.what} ${forced.next}` : "Nothing is running on this device now.";
  setText(byId("stopped-title"), `Stopped at ${clockTime(Date.now())}`);
  setText(byId("stopped-words"), `${rest} ${earned}`.trim());
  screens.show("stopped");
}

// The night has ended by itself: something only the owner can mend.
function over({ earnedMicrousd = 0, leasesDone = 0, terms, error }) {
  home.keepNight({ earnedMicrousd, leasesDone });
  const trouble = anySentenceFor(error?.code ?? "error", { message: error?.message, terms });
  home.show(identity, { trouble });
}

// A newer version brings a page of its own, so it waits for a moment when nothing is lost by that.
function updateIfFree() {
  if (installation.updateWaits && screens.current === "home") installation.update();
}

function showNetwork() {
  show(byId("offline"), !navigator.onLine);
}
