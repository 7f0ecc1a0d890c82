"""The real site of tests.worker_protocol, whose run has kernels for a browser's GPU on a processor.

Run as `python -m tests.phone.worker.real_site PORT CODES`.
"""

import sys
from dataclasses import replace
from typing import Any

from tests.worker_protocol.real_site import main  # first, as it sets Django up

# isort: split
from blobs.services import blob_put
from scheduler.domain.spec import RunSpec
from tests.phone.worker.jobs import compiled_for_processors
from tests.scheduler.training import digits_run, trainee


def compiled_digits_run(**arguments: Any) -> RunSpec:
    stored = blob_put(data=compiled_for_processors(trainee().training), holder="job:digits")
    return replace(digits_run(**arguments), program_sha256=stored.sha256)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), urls="tests.phone.worker.urls", make_spec=compiled_digits_run)
