// How hot the device is, told from how fast it works, as browsers have no thermometer. Pure: times come as arguments.
//
// The measure is work per second of computing against the best seen with the same program, smoothed so that a
// hiccup or warming up changes nothing. A phone that has worked for minutes runs at half its first speed; that
// is `fair`, and short pauses keep it from getting worse. `serious` and `critical` stop work (the server does
// too) until the device has rested; a relapse makes the next rest longer.

const LEVELS = ["nominal", "fair", "serious", "critical"];
// The speed, as a part of the best, under which a level is entered and over which it is left.
const ENTER_BELOW = [Infinity, 0.7, 0.35, 0.2];
const LEAVE_ABOVE = [Infinity, 0.85, 0.55, 0.4];
// For how much computing in a row the speed must say so.
const WORSE_AFTER_MS = 20_000;
const BETTER_AFTER_MS = 60_000;

const SMOOTHING_MS = 15_000;
// What a program's first runs take says nothing: pipelines are made and submissions find their length.
const WARM_UP_MS = 3_000;
const MEASURED_AFTER_MS = 5_000;

const COOLING_MS = 3 * 60_000;
const REST_MS = [0, 5 * 60_000, 2 * 60_000, 5 * 60_000];
const LONGEST_REST_MS = 30 * 60_000;
// Work for so long without a rest, and the next rest is a short one again.
const CALM_MS = 30 * 60_000;
// At `fair`, the part of its computing time that the device rests in between.
const FAIR_PAUSE = 1 / 3;
const MAX_PROGRAMS = 16;

export class ThermalEstimate {
  #level = 0;
  #programs = new Map(); // by hash: {warmedMs, measuredMs, rate, best}, rate and best in work per ms
  #current = null; // the program worked on last
  #ratio = 1; // speed as a part of the best, carried from one program to the next
  #beyondMs = { worse: 0, better: 0 }; // how long the speed has said so
  #workedMs = null; // when work was last seen
  #restingSinceMs = null;
  #relapses = 0;
  #calmMs = 0;

  // `work` units (steps) of a program took `busyMs` of computing, until `nowMs`.
  observe({ program, work, busyMs, nowMs }) {
    if (!(busyMs > 0)) return;
    this.#settle(nowMs);
    const entry = this.#entry(program);
    this.#workedMs = nowMs;
    this.#restingSinceMs = null;
    this.#calmMs += busyMs;
    if (this.#calmMs >= CALM_MS) this.#relapses = 0;
    if (this.#measure(entry, work, busyMs)) this.#judge(busyMs, nowMs);
  }

  // One of the protocol's words.
  state(nowMs) {
    this.#settle(nowMs);
    return LEVELS[this.#level];
  }

  // The present speed as a part of the best; null before anything was measured.
  get speed() {
    return this.#current !== null && this.#current.best !== null ? this.#ratio : null;
  }

  // How long to rest after `busyMs` of computing.
  pauseMs(busyMs) {
    return this.#level === 0 ? 0 : busyMs * FAIR_PAUSE;
  }

  #entry(program) {
    let entry = this.#programs.get(program);
    if (entry === undefined) {
      entry = { warmedMs: 0, measuredMs: 0, rate: null, best: null };
    }
    if (entry !== this.#current) {
      // Measured anew, for the device may have cooled or warmed since this program's last turn.
      Object.assign(entry, { warmedMs: 0, measuredMs: 0, rate: null });
      this.#beyondMs = { worse: 0, better: 0 };
    }
    this.#programs.delete(program);
    this.#programs.set(program, entry);
    if (this.#programs.size > MAX_PROGRAMS) this.#programs.delete(this.#programs.keys().next().value);
    this.#current = entry;
    return entry;
  }

  // Whether there is a speed to judge by.
  #measure(entry, work, busyMs) {
    if (entry.warmedMs < WARM_UP_MS) {
      entry.warmedMs += busyMs;
      return false;
    }
    const weight = entry.rate === null ? 1 : 1 - Math.exp(-busyMs / SMOOTHING_MS);
    // The first rates count as an average of all so far, so that none of them alone is taken for the best.
    const share = Math.max(weight, busyMs / (entry.measuredMs + busyMs));
    entry.rate = (entry.rate ?? 0) + share * (work / busyMs - (entry.rate ?? 0));
    entry.measuredMs += busyMs;
    if (entry.measuredMs < MEASURED_AFTER_MS || entry.rate === 0) return false;
    // A new program starts on a device as hot as the last one left it.
    entry.best = Math.max(entry.best ?? entry.rate / this.#ratio, entry.rate);
    this.#ratio = entry.rate / entry.best;
    return true;
  }

  #judge(busyMs, nowMs) {
    const worse = this.#ratio < (ENTER_BELOW[this.#level + 1] ?? 0);
    const better = this.#ratio > LEAVE_ABOVE[this.#level];
    this.#beyondMs.worse = worse ? this.#beyondMs.worse + busyMs : 0;
    this.#beyondMs.better = better ? this.#beyondMs.better + busyMs : 0;
    if (this.#beyondMs.worse >= WORSE_AFTER_MS) this.#enter(this.#level + 1, nowMs);
    else if (this.#beyondMs.better >= BETTER_AFTER_MS) this.#enter(this.#level - 1, nowMs);
  }

  #enter(level, nowMs) {
    if (level === 2 && this.#level === 1) {
      this.#relapses += 1;
      this.#calmMs = 0;
    }
    this.#level = level;
    this.#beyondMs = { worse: 0, better: 0 };
    if (level >= 2) this.#restingSinceMs = nowMs;
  }

  // What rest alone does: the device cools, and after long enough it is as good as new.
  #settle(nowMs) {
    const idleSinceMs = this.#restingSinceMs ?? this.#workedMs;
    if (idleSinceMs === null || nowMs - idleSinceMs < this.#restNeededMs() || this.#level === 0) return;
    this.#level = 0;
    this.#ratio = 1 - (1 - this.#ratio) * Math.exp((idleSinceMs - nowMs) / COOLING_MS);
    this.#beyondMs = { worse: 0, better: 0 };
    if (this.#current !== null) Object.assign(this.#current, { warmedMs: 0, measuredMs: 0, rate: null });
    this.#restingSinceMs = null;
    this.#workedMs = nowMs;
  }

  #restNeededMs() {
    const longer = this.#level >= 2 ? 2 ** Math.max(0, this.#relapses - 1) : 1;
    return Math.min(LONGEST_REST_MS, REST_MS[this.#level] * longer);
  }
}
