// The bounds of `nightshift.v1` that a device keeps: docs/protocol.md. All times are whole milliseconds.

export const PROTOCOL = "nightshift.v1";
export const MAX_FRAME_BYTES = 64 * 1024;
export const MAX_STEPS = 4_096;
export const MAX_HELD_LEASES = 16;
export const MAX_CACHED = 64;
export const MAX_SHORT_CHARACTERS = 200;
export const AUTH_TIMEOUT_MS = 10_000;
export const HEARTBEAT_MS = 10_000;
export const MISSED_HEARTBEATS = 3;
