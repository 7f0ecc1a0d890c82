// How much work goes to the GPU at once. A phone's watchdog ends long submissions, so each is meant to take at most
// SUBMISSION_MS; a step too long for that is cut between its dispatches.

export const SUBMISSION_MS = 100;

// Measured times correct estimates by at most this factor at once: a busy moment is no lasting change.
const LARGEST_CORRECTION = 2;

// Work is counted through all steps: piece p is dispatch p % dispatches of step p / dispatches.
export class SubmissionPlan {
  #estimatesMs;

  constructor(dispatches) {
    this.#estimatesMs = new Array(dispatches).fill(null);
  }

  // The end of the submission that starts with piece `start`; there are `total` pieces. A dispatch that was never
  // measured goes alone.
  endOf(start, total) {
    let end = start;
    for (let sumMs = 0; end < total; end += 1) {
      const estimateMs = this.#estimateMs(end);
      if (estimateMs === null) return Math.max(end, start + 1);
      sumMs += estimateMs;
      if (sumMs > SUBMISSION_MS && end > start) return end;
    }
    return end;
  }

  // The submission of the pieces from `start` to `end` took `measuredMs`.
  learn(start, end, measuredMs) {
    if (end === start + 1) {
      this.#estimatesMs[start % this.#estimatesMs.length] = measuredMs;
      return;
    }
    let estimatedMs = 0;
    for (let piece = start; piece < end; piece += 1) estimatedMs += this.#estimateMs(piece);
    const wanted = measuredMs / Math.max(estimatedMs, Number.MIN_VALUE);
    const correction = Math.min(LARGEST_CORRECTION, Math.max(1 / LARGEST_CORRECTION, wanted));
    const positions = Math.min(end - start, this.#estimatesMs.length);
    for (let piece = start; piece < start + positions; piece += 1) {
      this.#estimatesMs[piece % this.#estimatesMs.length] *= correction;
    }
  }

  #estimateMs(piece) {
    return this.#estimatesMs[piece % this.#estimatesMs.length];
  }
}
