// Whether this device may work now, decided here so that it stops within a second, whatever the network does.
// Pure. The server decides the same (accounts/domain/policy.py) and has the last word.
//
// A reading that is missing is unknown, and unknown never blocks. A threshold that has stopped the device lets
// it go on only with some margin, so that a value flickering around it does not start and stop work.

// Each takes the terms in force, the readings {batteryPercent, charging, network, thermal} and whether it is what has
// stopped the device. Safety first.
const SENSOR_CHECKS = {
  too_hot: (_terms, { thermal }, stopped) =>
    (stopped ? ["fair", "serious", "critical"] : ["serious", "critical"]).includes(thermal),

  battery_low: (terms, { batteryPercent, charging }, stopped) => {
    // 0 % on the charger is what a device without a battery sensor reports.
    if (batteryPercent === null || (batteryPercent === 0 && charging)) return false;
    return batteryPercent < (stopped ? terms.battery_resume_percent : terms.battery_floor_percent);
  },

  not_charging: (terms, { charging }) => terms.charging_only && charging === false,

  // Without a network nothing is spent: what is under way goes on, and is told when there is one again.
  not_on_wifi: (terms, { network }) => terms.wifi_only && network === "cellular",
};

// Why the device may not work now, or null if it may: `stopped` (by the owner's tap), `hidden` (the page), or
// one of the protocol's reasons. `terms` is null until the server has told them; `before` is the last answer:
// the reason that stopped the device is asked first, with its margin.
export function decide({ terms, readings, stopped, visible, serverNowMs, before }) {
  if (stopped) return "stopped";
  if (!visible) return "hidden";
  if (terms === null) return SENSOR_CHECKS.too_hot(terms, readings, before === "too_hot") ? "too_hot" : null;
  if (isClosed(terms, serverNowMs)) return "outside_window";
  const reasons = Object.keys(SENSOR_CHECKS).sort((one, other) => (other === before) - (one === before));
  return reasons.find((reason) => SENSOR_CHECKS[reason](terms, readings, reason === before)) ?? null;
}

// Both times are null where time changes nothing. After a window has opened the server sends new terms.
function isClosed({ opens_ms: opensMs, closes_ms: closesMs }, serverNowMs) {
  return (closesMs !== null && serverNowMs >= closesMs) || (opensMs !== null && serverNowMs < opensMs);
}
