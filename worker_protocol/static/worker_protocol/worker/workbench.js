// The one lease under way, and the reports that the server has not answered yet. Both outlive a socket: while none is
// open, work goes on and reports wait. Results outlive the tab too.

import { MAX_HELD_LEASES, MAX_SHORT_CHARACTERS } from "../wire/limits.js";
import { recordDelete, recordsRead, recordWrite } from "./database.js";
import { LeaseFailed } from "./errors.js";

// A result is said again this long after the last time; a hand-back that is not refused by then has arrived.
const REPEAT_MS = 10_000;
const BUSY_MS = 1_000;
const PROGRESS_MS = 1_000;
// A result kept from an earlier life of the tab is of no use later than this.
const KEPT_REPORT_MS = 60 * 60_000;
const RECORDS = "reports";

export class Workbench {
  #work;
  #say;
  #changed;
  #freed;
  #nowMs;
  #times;
  #lease = null;
  #stop = null; // of the lease under way
  #stage = null;
  #step = 0;
  #stepSaid = 0;
  #progressDueMs = 0;
  #reports = new Map(); // by lease id: {message, dueMs, refused}

  leasesDone = 0;
  // What became of the last lease, where that was not an accepted result: {family, code}, else null.
  setback = null;

  // `work(lease, {signal, told})` makes a lease's result message; `say(message)` puts one on the socket, if there is
  // one; `changed()` hears of everything that the owner may see; `freed()` of a lease that ended by itself.
  constructor({ work, say, changed, freed, nowMs, times = {} }) {
    this.#work = work;
    this.#say = say;
    this.#changed = changed;
    this.#freed = freed;
    this.#nowMs = nowMs;
    this.#times = { repeatMs: REPEAT_MS, busyMs: BUSY_MS, progressMs: PROGRESS_MS, ...times };
  }

  get isFree() {
    return this.#lease === null;
  }

  // What the owner sees: {leaseId, stage, step, steps}, or null.
  get underWay() {
    if (this.#lease === null) return null;
    const { lease_id: leaseId, steps } = this.#lease;
    return { leaseId, stage: this.#stage, step: this.#step, steps };
  }

  // Leases to name when logging in: the one under way, and those whose result waits for an answer.
  get held() {
    const waiting = [...this.#reports].filter(([, { message }]) => message.type === "result");
    const ids = waiting.map(([leaseId]) => leaseId);
    return (this.#lease ? [this.#lease.lease_id, ...ids] : ids).slice(0, MAX_HELD_LEASES);
  }

  // Results that a tab which was killed had not seen acknowledged.
  async restore() {
    for (const [leaseId, { message, savedMs }] of await recordsRead(RECORDS).catch(() => [])) {
      if (Date.now() - savedMs < KEPT_REPORT_MS) this.#reports.set(leaseId, { message, dueMs: 0, refused: false });
      else await forget(leaseId);
    }
  }

  // ---- what the server says

  // Start on a lease; one that is here already is only confirmed again.
  take(lease) {
    const leaseId = lease.lease_id;
    if (this.#reports.has(leaseId)) {
      this.#sayReport(this.#reports.get(leaseId));
    } else if (this.#lease === null) {
      this.#lease = lease;
      this.#stop = new AbortController();
      [this.#step, this.#stepSaid] = [0, 0];
      this.#say({ type: "progress", lease_id: leaseId, step: 0 });
      this.#run(lease, this.#stop.signal);
    } else if (this.#lease.lease_id === leaseId) {
      this.#say({ type: "progress", lease_id: leaseId, step: this.#step });
    } else {
      this.#say({ type: "handback", lease_id: leaseId, reason: "busy" });
    }
  }

  // A lease that may not be worked on now goes back at once.
  refuse(lease, reason) {
    if (this.#lease?.lease_id === lease.lease_id || this.#reports.has(lease.lease_id)) this.take(lease);
    else this.#report({ type: "handback", lease_id: lease.lease_id, reason });
  }

  revoke({ lease_id: leaseId, reason }) {
    this.#forgetReport(leaseId);
    if (this.#lease?.lease_id !== leaseId) return;
    this.setback = { family: "revoke", code: reason };
    this.#abandon("the lease was revoked");
  }

  acknowledge(ack) {
    const waited = this.#reports.has(ack.lease_id);
    this.#forgetReport(ack.lease_id);
    if (waited) {
      this.setback = ack.accepted ? null : { family: "refused", code: ack.code };
      if (ack.accepted) this.leasesDone += 1;
    }
    this.#changed();
  }

  refusedAsBusy(leaseId) {
    const report = this.#reports.get(leaseId);
    if (!report) return;
    report.refused = true;
    report.dueMs = this.#nowMs() + this.#times.busyMs;
  }

  // ---- what the device decides

  // Give the lease under way back, if there is one.
  handBack(reason) {
    if (this.#lease === null) return;
    const leaseId = this.#lease.lease_id;
    this.#abandon("the lease was handed back");
    this.#report({ type: "handback", lease_id: leaseId, reason });
  }

  // Say again what the server may have missed.
  onNewSocket() {
    for (const report of this.#reports.values()) this.#sayReport(report);
    if (this.#lease) this.#say({ type: "progress", lease_id: this.#lease.lease_id, step: this.#step });
  }

  // Tell the progress; repeat or forget reports when their time has come.
  tick() {
    const nowMs = this.#nowMs();
    if (this.#lease && this.#step > this.#stepSaid && nowMs >= this.#progressDueMs) {
      this.#stepSaid = this.#step;
      this.#progressDueMs = nowMs + this.#times.progressMs;
      this.#say({ type: "progress", lease_id: this.#lease.lease_id, step: this.#step });
    }
    for (const [leaseId, report] of this.#reports) {
      if (nowMs < report.dueMs) continue;
      if (report.refused || report.message.type === "result") this.#sayReport(report);
      else this.#reports.delete(leaseId);
    }
  }

  // ---- the work

  async #run(lease, signal) {
    let message;
    try {
      message = await this.#work(lease, { signal, told: this.#told(lease) });
      signal.throwIfAborted();
    } catch (error) {
      if (signal.aborted) return; // whoever stopped it has said so
      message = handback(lease, error);
      this.setback = { family: "handback", code: message.reason };
    }
    [this.#lease, this.#stop] = [null, null];
    if (message.type === "result") keep(message);
    this.#report(message);
    this.#changed();
    this.#freed();
  }

  // News of a lease that has been given up meanwhile is passed over.
  #told(lease) {
    return {
      stage: (name) => {
        if (this.#lease !== lease) return;
        this.#stage = name;
        this.#changed();
      },
      step: (done) => {
        if (this.#lease !== lease) return;
        this.#step = done;
        this.#changed();
      },
    };
  }

  #abandon(why) {
    this.#stop.abort(new DOMException(why, "AbortError"));
    [this.#lease, this.#stop] = [null, null];
    this.#changed();
  }

  // ---- the reports

  #report(message) {
    const report = { message, dueMs: 0, refused: false };
    this.#reports.set(message.lease_id, report);
    this.#sayReport(report);
  }

  #sayReport(report) {
    report.refused = false;
    report.dueMs = this.#nowMs() + this.#times.repeatMs;
    this.#say(report.message);
  }

  #forgetReport(leaseId) {
    if (this.#reports.delete(leaseId)) forget(leaseId);
  }
}

function handback(lease, error) {
  const failure = error instanceof LeaseFailed ? error : new LeaseFailed("error", `${error.name}: ${error.message}`);
  const detail = [...failure.detail].slice(0, MAX_SHORT_CHARACTERS).join("");
  return { type: "handback", lease_id: lease.lease_id, reason: failure.reason, detail };
}

// Without a database a result lasts as long as the tab.
const keep = (message) => recordWrite(RECORDS, message.lease_id, { message, savedMs: Date.now() }).catch(() => {});
const forget = (leaseId) => recordDelete(RECORDS, leaseId).catch(() => {});
