"""The real site of tests.phone.worker with the digits job in full: three shards a round, rounds enough to learn it.

Run as `python -m tests.phone.sign_off_site PORT CODES`.
"""

import sys
from dataclasses import replace
from typing import Any, Final

from tests.phone.worker.real_site import compiled_digits_run  # first, as it sets Django up
from tests.worker_protocol.real_site import main

# isort: split
from scheduler.domain.spec import RunSpec

SHARDS: Final = 3
ROUNDS: Final = 8
LOCAL_STEPS: Final = 40
LEARNING_RATE: Final = 0.01
SCHEDULE: Final = "cosine"


def whole_digits_run(**_arguments: Any) -> RunSpec:
    run = compiled_digits_run(shards=SHARDS, steps=LOCAL_STEPS, rounds=ROUNDS)
    return replace(run, learning_rate=LEARNING_RATE, schedule=SCHEDULE)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), urls="tests.phone.worker.urls", make_spec=whole_digits_run)
