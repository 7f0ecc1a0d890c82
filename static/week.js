// Idle windows as stretches of the week, and back: pure, without a page. Minutes count from Monday 00:00 on the owner's
// clock, so that a change of clocks changes nothing here.
//
// A row is what the form has: { days: [0 is Monday], starts, ends } in minutes of the day; an end at or before the start
// is on the next day. A span is [first, last) in minutes of the week; spans are sorted and apart. Exact times survive:
// only what is painted changes.

export const DAY_MIN = 24 * 60;
export const WEEK_MIN = 7 * DAY_MIN;

export function spansOf(rows) {
  const spans = [];
  for (const { days, starts, ends } of rows) {
    const minutes = ends > starts ? ends - starts : ends - starts + DAY_MIN;
    for (const day of days) {
      const first = day * DAY_MIN + starts;
      const last = first + minutes;
      spans.push([first, Math.min(last, WEEK_MIN)]);
      if (last > WEEK_MIN) spans.push([0, last - WEEK_MIN]); // Sunday night goes on into Monday
    }
  }
  return merged(spans);
}

export function painted(spans, first, last, on) {
  if (on) return merged([...spans, [first, last]]);
  const kept = [];
  for (const [start, end] of spans) {
    if (start < first) kept.push([start, Math.min(end, first)]);
    if (end > last) kept.push([Math.max(start, last), end]);
  }
  return kept;
}

// How much of a stretch is covered: 0, 1, or in between where an exact time cuts through it.
export function covered(spans, first, last) {
  let minutes = 0;
  for (const [start, end] of spans) minutes += Math.max(0, Math.min(end, last) - Math.max(start, first));
  return minutes / (last - first);
}

export function minutesOf(spans) {
  return spans.reduce((sum, [start, end]) => sum + end - start, 0);
}

// The fewest rows: the same times on several days are one row, and what lasts beyond a day is cut at midnights.
export function rowsOf(spans) {
  const rows = new Map();
  for (const [first, last] of joinedAtWeekEnd(spans).flatMap(withinADay)) {
    const day = Math.floor(first / DAY_MIN) % 7;
    const [starts, ends] = [first % DAY_MIN, last % DAY_MIN];
    const key = `${starts} ${ends}`;
    if (!rows.has(key)) rows.set(key, { days: [], starts, ends });
    rows.get(key).days.push(day);
  }
  for (const row of rows.values()) row.days.sort((a, b) => a - b);
  return [...rows.values()].sort((a, b) => a.days[0] - b.days[0] || a.starts - b.starts);
}

function merged(spans) {
  const result = [];
  for (const [start, end] of [...spans].sort((a, b) => a[0] - b[0])) {
    const before = result.at(-1);
    if (before && start <= before[1]) before[1] = Math.max(before[1], end);
    else result.push([start, end]);
  }
  return result;
}

function joinedAtWeekEnd(spans) {
  const last = spans.at(-1);
  if (spans.length < 2 || spans[0][0] !== 0 || last[1] !== WEEK_MIN) return spans;
  return [...spans.slice(1, -1), [last[0], WEEK_MIN + spans[0][1]]];
}

function withinADay([first, last]) {
  if (last - first <= DAY_MIN) return [[first, last]];
  const pieces = [];
  for (let start = first; start < last; ) {
    const end = Math.min(last, (Math.floor(start / DAY_MIN) + 1) * DAY_MIN);
    pieces.push([start, end]);
    start = end;
  }
  return pieces;
}
