// What a night would earn, in words, from the site's figures. Pure.

import { hours, money, percent, speedWords } from "./words.js";

// {range, basis: [line]} for a device of `deviceClass`; `facts` as /device/facts/ answers. Null for a class that the
// site does not pay for.
export function outlookWords({ facts, deviceClass, flopsPerSecond }) {
  const { outlook, own_windows: ownWindows } = facts;
  const found = outlook.classes.find(({ key }) => key === deviceClass);
  if (!found) return null;
  const [low, high] = [money(found.night_low_microusd), money(found.night_high_microusd)];
  const windows = ownWindows ? "as your windows are set" : "22:00 to 07:00, until you set other windows";
  return {
    range: low === high ? `about ${high}` : `about ${low} to ${high}`,
    basis: [
      `${hours(outlook.hours_a_night)} a night, ${outlook.nights_a_week} nights a week: ${windows}.`,
      `${money(found.microusd_per_gpu_hour)} for an hour of work: today’s rate for “${found.label}”, after the site’s fee of ${percent(outlook.fee_percent)}.`,
      `Measured just now: ${speedWords(flopsPerSecond)}.`,
      "The lower figure is for a phone that heat slows to half its speed. Only work is paid: a night without jobs earns nothing.",
    ],
  };
}
