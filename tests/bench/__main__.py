"""`python -m tests.bench [suite ...]`: run the suites, each a module here with `run() -> list[Row]`."""

import importlib
import os
import platform
import sys

from tests.bench.rows import publish

SUITES = ("training", "kernels", "browser", "phone", "money")


def main(wanted: list[str]) -> int:
    unknown = sorted(set(wanted) - {*SUITES, "all"})
    if unknown:
        print(f"No such suite: {', '.join(unknown)}. There are: {', '.join(SUITES)}.")
        return 2
    print(f"{platform.platform()}, {os.cpu_count()} processors\n")
    for suite in SUITES if "all" in wanted else wanted:
        print(f"suite {suite}")
        publish(suite, importlib.import_module(f"tests.bench.{suite}").run())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["all"]))
