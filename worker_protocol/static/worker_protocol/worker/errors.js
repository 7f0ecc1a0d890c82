// What ends the worker, or a lease on it.
//
// WorkerError
// ├── CannotWork     only the owner can mend it; the worker ends, and the page says the next step by the code:
// │                  not_paired, other_tab, no_gpu, self_test_failed, self_test_unavailable, working, error, and
// │                  the wire's auth_failed, device_removed, superseded
// └── LeaseFailed    a lease goes back to the server, with one of the wire's reasons

export class WorkerError extends Error {
  constructor(message) {
    super(message);
    this.name = this.constructor.name;
  }
}

export class CannotWork extends WorkerError {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

// `reason` and `detail` go into the hand-back.
export class LeaseFailed extends WorkerError {
  constructor(reason, detail) {
    super(detail);
    this.code = reason;
    this.reason = reason;
    this.detail = detail;
  }
}
