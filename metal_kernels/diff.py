"""`python -m metal_kernels.diff BEFORE [AFTER]`: what two commits make of the same programs.

The kernels of a few programs are kept as text under `tests/metal_kernels/compiler/golden`. This shows how those files
differ between two commits, or between a commit and the files as they are now: a refactor shows nothing.
"""

import argparse
import subprocess
import sys
from pathlib import Path

GOLDEN = "tests/metal_kernels/compiler/golden"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m metal_kernels.diff", description=__doc__)
    parser.add_argument("before", help="a commit")
    parser.add_argument("after", nargs="?", help="another commit; the working tree if left out")
    options = parser.parse_args(arguments)
    root = Path(__file__).resolve().parent.parent
    commits = [options.before, *([options.after] if options.after else [])]
    if any(commit.startswith("-") for commit in commits):
        parser.error("a commit does not start with '-'")
    found = subprocess.run(
        ["git", "-C", str(root), "diff", "--exit-code", *commits, "--", GOLDEN],
        check=False,
        capture_output=True,
        text=True,
    )
    sys.stdout.write(found.stdout if found.stdout or found.returncode == 0 else found.stderr)
    if found.returncode == 0:
        sys.stdout.write("The kernels are the same.\n")
    return found.returncode


if __name__ == "__main__":
    sys.exit(main())
