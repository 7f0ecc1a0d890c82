"""Every time, count and factor that bounds the scheduler, in one place."""

from datetime import timedelta

# A lease lasts LEASE_SLACK times what its device should take, and time to fetch and return its blobs.
LEASE_MIN = timedelta(seconds=30)
LEASE_SLACK = 4
TRANSFER_BYTES_PER_SECOND = 500_000

# A device may come back to its lease: after a lost socket, or after the server itself was away.
RESUME_GRACE = timedelta(seconds=20)
RESTART_GRACE = timedelta(seconds=60)
# What is shorter than this is no spell of its own in the record of a device.
SPELL_MIN = timedelta(seconds=60)
# A round whose deadline passed while the server was away waits so long for results that could not get in.
RESTART_ROUND_GRACE = timedelta(seconds=15)

# What is asked for and not answered is asked for again, and given up after MAX_ASKS.
RESEND_LEASE_AFTER = timedelta(seconds=5)
RECHECK_AFTER = timedelta(seconds=30)
REAGGREGATE_AFTER = timedelta(minutes=5)
MAX_ASKS = 5
# A lease that a connected device has not confirmed after so many: its socket died with its web process.
MAX_LEASE_ASKS = 4

# A round may close without its last shards once QUORUM (numerator, denominator) of them are in.
QUORUM = (2, 3)
STRAGGLER_FACTOR = 1.5
STRAGGLER_MIN = timedelta(seconds=2)

# A failing device sits out 10 s, 20 s, 40 s ... up to an hour. One that gives work back unblamed rests a
# little.
BENCH_FIRST = timedelta(seconds=10)
BENCH_MAX = timedelta(hours=1)
REST = timedelta(seconds=30)

# Pace: how a device's turnaround compares with what its class and speed promise.
PACE_MIN, PACE_MAX = 0.25, 16.0
PACE_WEIGHT = 0.3  # of the newest observation
OVERHEAD_US = 2_000_000  # messages and transfers of a small lease, which say nothing of a device's pace
# A device stands still when it makes no step for so long, and for so many times what its steps took.
STALLED_MIN = timedelta(seconds=10)
STALLED_STEPS = 3

# A shard that fails so often, on so many devices, is at fault itself.
SHARD_FAILURES = 5
SHARD_FAILURE_DEVICES = 3

STORY_LENGTH = 8
