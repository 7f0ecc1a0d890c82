// How much work goes to the GPU at once, as metal_kernels/runtimes/submissions.py. A phone's watchdog ends long
// submissions, so each is meant to take at most SUBMISSION_MS; a step too long for that is cut between its dispatches.
// Estimates come with the program and are corrected by what is measured.

export const SUBMISSION_MS = 100;

// Measured times correct measured ones by at most this factor at once: a busy moment is no lasting change.
const LARGEST_CORRECTION = 2;

const NAMED_AT_MOST = 5;

// The kernels of one submission for a sentence: a GPU that gives up does not tell at which of them.
export function kernelsNamed(names) {
  const kernels = `kernel${names.length > 1 ? "s" : ""} ${names.slice(0, NAMED_AT_MOST).join(", ")}`;
  const more = names.length - NAMED_AT_MOST;
  return more > 0 ? `${kernels} and ${more} more` : kernels;
}

// Work is counted through all steps: piece p is dispatch p % dispatches of step p / dispatches.
export class SubmissionPlan {
  #estimatesMs;
  #measured;

  constructor(estimatesMs) {
    this.#estimatesMs = Array.from(estimatesMs);
    this.#measured = new Array(this.#estimatesMs.length).fill(false);
  }

  // The end of the submission that starts with piece `start`; there are `total` pieces.
  endOf(start, total) {
    let end = start;
    for (let sumMs = 0; end < total; end += 1) {
      sumMs += this.#estimatesMs[end % this.#estimatesMs.length];
      if (sumMs > SUBMISSION_MS && end > start) break;
    }
    return end;
  }

  // The submission of the pieces from `start` to `end` took `measuredMs`.
  learn(start, end, measuredMs) {
    const count = this.#estimatesMs.length;
    let estimatedMs = 0;
    for (let piece = start; piece < end; piece += 1) estimatedMs += this.#estimatesMs[piece % count];
    const positions = Array.from({ length: Math.min(end - start, count) }, (_, place) => (start + place) % count);
    let correction = Math.max(measuredMs / estimatedMs, 1 / LARGEST_CORRECTION);
    if (positions.every((position) => this.#measured[position])) {
      correction = Math.min(correction, LARGEST_CORRECTION);
    }
    for (const position of positions) {
      this.#estimatesMs[position] *= correction;
      this.#measured[position] = true;
    }
  }
}
