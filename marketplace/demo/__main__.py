"""The main job on this machine: three device processes train a buyer's digits model, one dies half-way, all are paid.

Everything goes through the front door: people pair devices, upload, confirm and download over the REST API, and the
site and the devices are processes of their own. Everything that is written lies in var/demo, made anew each time.
`DEMO_EXIT=1` ends the demo after the report instead of leaving the site up.
"""

import logging
import os
import shutil
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import django

from marketplace.demo.site import Site

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "var" / "demo"


def main() -> int:
    started = time.monotonic()
    shutil.rmtree(FOLDER, ignore_errors=True)
    site = Site(folder=FOLDER, root=ROOT)
    os.environ.update(site.environ)
    django.setup()
    logging.getLogger().setLevel(logging.WARNING)  # the demo tells its own story

    # Only now is there an app registry for the story to import models through.
    from marketplace.demo import story

    with ExitStack() as cleanup:
        cleanup.callback(site.stop)
        try:
            story.tell(site, folder=FOLDER, cleanup=cleanup, started=started)
            if os.environ.get("DEMO_EXIT") == "1":
                return 0
            story.invite(site)
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            print("\nStopping the site and the devices.")  # noqa: T201
            return 0


if __name__ == "__main__":
    sys.exit(main())
