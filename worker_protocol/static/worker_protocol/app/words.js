// Figures as people read them. Pure, but for the phone's own way of writing times.

const MICROUSD_PER_USD = 1_000_000;

// 4_612_345 -> "$4.61"; under a cent the digits that matter: 1_234 -> "$0.0012".
export function money(microusd) {
  const dollars = microusd / MICROUSD_PER_USD;
  if (dollars === 0 || dollars >= 0.01) return `$${dollars.toFixed(2)}`;
  return `$${dollars.toFixed(Math.min(6, 1 - Math.floor(Math.log10(dollars))))}`;
}

// For a figure that one watches growing: digits enough to see it do so.
export function runningMoney(microusd) {
  const dollars = microusd / MICROUSD_PER_USD;
  const digits = dollars === 0 || dollars >= 1 ? 2 : dollars >= 0.01 ? 4 : 6;
  return `$${dollars.toFixed(digits)}`;
}

// With a space that no line breaks at.
export const percent = (value) => `${Math.round(value)}\u00a0%`;

const CLOCK = new Intl.DateTimeFormat([], { hour: "numeric", minute: "2-digit" });

// With no space that a line may break at.
export const clockTime = (ms) => CLOCK.format(ms).replace(/\s/g, "\u00a0");

// An hour of any day, in the same way: 22 -> "22:00".
export const hourOfDay = (hour) => clockTime(new Date(2000, 0, 1, hour));

// The same for a large clock in the dark, where nobody needs to be told whether it is morning.
export function clockFace(ms) {
  const parts = CLOCK.formatToParts(ms).filter(({ type }) => type !== "dayPeriod");
  return parts.map(({ value }) => value).join("").trim();
}

// "at 22:00", or with the day where that is not within a day.
export function momentWords(ms, nowMs) {
  const at = clockTime(ms);
  if (ms - nowMs < 24 * 3_600_000) return `at ${at}`;
  return `on ${new Date(ms).toLocaleDateString([], { weekday: "long" })} at ${at}`;
}

// 9 -> "9 hours", 7.5 -> "7.5 hours".
export function hours(value) {
  const rounded = Math.round(value * 10) / 10;
  return `${rounded} hour${rounded === 1 ? "" : "s"}`;
}

// 1.5e11 -> "150 GFLOP/s".
export function speedWords(flopsPerSecond) {
  const giga = flopsPerSecond / 1e9;
  return giga >= 1000 ? `${(giga / 1000).toPrecision(3)} TFLOP/s` : `${giga.toPrecision(3)} GFLOP/s`;
}
