// The night in words: what the worker's state, the terms in force and the sensors mean to the owner. Pure.

import { anySentenceFor, sentenceFor } from "./sentences.js";
import { momentWords, percent } from "./words.js";

const PHASES = {
  off: ["Getting ready", ""],
  connecting: ["Connecting", ""],
  self_test: ["Checking the GPU", "The browser or the app has changed: its results are compared with known answers."],
  waiting: ["Waiting for work", "The next piece that fits this device is taken at once."],
  fetching: ["Fetching a piece of work", ""],
  training: ["Training", ""],
  uploading: ["Handing in the result", ""],
};
// Under this the clock is off by a time zone or a wrong date, not by drifting.
export const CLOCK_TOLERANCE_MS = 10 * 60_000;

// {doing, detail, tone, progress}: `progress` is the done part of the piece of work, or null; `tone` is "work", "rest"
// or "bad". `onLine` is the browser's word, which knows better than the worker why no site answers.
export function doingWords(state, { nowMs, onLine }) {
  const { phase, reason, lease, terms, error } = state;
  if (phase === "ended" && error) {
    const { what, next } = anySentenceFor(error.code, { message: error.message, terms });
    return { doing: what, detail: next, tone: "bad", progress: null };
  }
  if (phase === "paused" || (phase === "ended" && reason)) {
    const { what, next } = sentenceFor("blocked", reason, { terms, nowMs });
    return { doing: what, detail: next, tone: "rest", progress: null };
  }
  const [doing, usual] = PHASES[reason === "self_test" ? reason : phase] ?? PHASES.off;
  const setback = state.setback ? sentenceFor(state.setback.family, state.setback.code, { terms }) : null;
  const trouble = troubleWords(error, { terms, onLine });
  const steps = phase === "training" && lease ? `Step ${lease.step} of ${lease.steps}` : usual;
  const news = trouble ?? (phase === "waiting" ? setback : null);
  return {
    doing,
    detail: news ? `${news.what} ${news.next}` : steps,
    tone: lease ? "work" : "rest",
    progress: lease && lease.steps ? partOf(phase, lease) : null,
  };
}

// "Window open until 07:00", "Next window at 22:00"; nothing before the terms are known.
export function windowWords(terms, nowMs) {
  if (!terms) return "";
  if (terms.closes_ms) return `Window open until ${momentWords(terms.closes_ms, nowMs).replace(/^(at|on) /, "")}`;
  return terms.opens_ms ? `Next window ${momentWords(terms.opens_ms, nowMs)}` : "";
}

// "Charging, 81 % · full speed": what is known of power, heat and speed.
export function bodyWords({ batteryPercent, charging }, { thermal, speed }) {
  const power = [];
  if (charging !== null) power.push(charging ? "Charging" : "Not charging");
  if (batteryPercent !== null) power.push(percent(batteryPercent));
  const parts = [power.join(", "), heatWords(thermal, speed)];
  return parts.filter(Boolean).join(" · ");
}

// The one thing that the owner should know beside all this: a code of `local` with its facts, or null.
export function warningOf({ wake, state, diagnosis, storageFull }) {
  if (diagnosis) return [diagnosis, {}];
  if (wake === "missing") return ["no_wake_lock", {}];
  if (wake === "refused") return ["wake_lock_refused", {}];
  if (Math.abs(state.clockSkewMs ?? 0) > CLOCK_TOLERANCE_MS) return ["clock_wrong", { clockSkewMs: state.clockSkewMs }];
  if (storageFull) return ["storage_full", {}];
  return null;
}

function troubleWords(error, { terms, onLine }) {
  if (!onLine) return sentenceFor("local", "offline");
  return error ? anySentenceFor(error.code, { message: error.message, terms }) : null;
}

function heatWords(thermal, speed) {
  if (speed === null || speed === undefined) return "";
  if (thermal === "serious" || thermal === "critical") return `too warm, at ${percent(speed * 100)} of its speed`;
  if (thermal === "fair" || speed < 0.9) return `warm, at ${percent(speed * 100)} of its speed`;
  return "full speed";
}

function partOf(phase, { step, steps }) {
  return phase === "uploading" ? 1 : step / steps;
}
