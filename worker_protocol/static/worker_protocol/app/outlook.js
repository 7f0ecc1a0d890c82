// What a night would earn, in words, from the site's figures. Pure.

import { hourOfDay, hours, money, percent, speedWords } from "./words.js";

const HOUR_S = 3_600;
const BASIS_POINTS = 10_000;
const USUAL_HOURS = `${hourOfDay(22)} to ${hourOfDay(7)}`;

// {range, basis: [line]}; `facts` as /device/facts/ and `estimate` as /api/estimates/device/ answer.
export function outlookWords({ facts, estimate, flopsPerSecond }) {
  const { low_microusd: low, high_microusd: high, rate_microusd_per_gpu_second: rate } = estimate;
  const fee = estimate.fee_basis_points / BASIS_POINTS;
  const label = facts.class_labels[estimate.device_class] ?? estimate.device_class;
  const windows = facts.own_windows ? "as your windows are set" : `${USUAL_HOURS}, until you set other windows`;
  return {
    range: low === 0 ? `up to ${money(high)}` : `${money(low)} to ${money(high)}`,
    basis: [
      `${hours(facts.hours_a_night)} a night, ${facts.nights_a_week} nights a week: ${windows}.`,
      `${money(rate * HOUR_S * (1 - fee))} for an hour of work: today’s rate for “${label}”, after the site’s fee of ${percent(fee * 100)}.`,
      `Measured just now: ${speedWords(flopsPerSecond)}.`,
      estimate.basis,
      "A phone that heat slows to half its speed earns about a quarter less in the hour.",
    ],
  };
}
