"""The whole site, its fleet manager and a run to train, in one process, for the app as owners have it.

Run as `python -m tests.phone.shell.real_site PORT CODES`.
"""

import sys
from contextlib import suppress

from tests.phone.worker.real_site import compiled_digits_run  # first, as it sets Django up
from tests.worker_protocol.real_site import main

# isort: split
from django.conf import settings

from tests.phone.worker.urls import SELF_TEST_FOLDER

if __name__ == "__main__":
    settings.VAR_DIR.mkdir(parents=True, exist_ok=True)
    SELF_TEST_FOLDER.mkdir(exist_ok=True)
    with suppress(FileExistsError):  # another start on the same folder
        (settings.VAR_DIR / "self-test").symlink_to(SELF_TEST_FOLDER)
    main(int(sys.argv[1]), int(sys.argv[2]), urls="marketplace.urls", make_spec=compiled_digits_run)
