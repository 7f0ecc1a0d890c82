"""What the person at the terminal sees: a progress bar on a terminal, plain lines in a log."""

import logging
import sys
from typing import Never, Protocol

from tqdm import tqdm

log = logging.getLogger("nightshift.agent")


class Display(Protocol):
    def say(self, line: str) -> None: ...

    def started(self, steps: int) -> None: ...

    def stepped(self, step: int) -> None: ...

    def ended(self, line: str) -> None: ...


def display_for_this_terminal() -> Display:
    return Bar() if sys.stderr.isatty() else Lines()


class Lines:
    """One log line for each thing that happens; steps are not worth one."""

    def say(self, line: str) -> None:
        log.info(line)

    def started(self, steps: int) -> None:
        log.info("working on a lease of %d steps", steps)

    def stepped(self, step: int) -> None:
        pass

    def ended(self, line: str) -> None:
        log.info(line)


class Bar:
    """A bar for the lease under way; everything else is written above it."""

    def __init__(self) -> None:
        self._bar: tqdm[Never] | None = None

    def say(self, line: str) -> None:
        tqdm.write(line, file=sys.stderr)

    def started(self, steps: int) -> None:
        self._close()
        self._bar = tqdm(total=steps, unit="step", desc="lease", leave=False, file=sys.stderr)

    def stepped(self, step: int) -> None:
        if self._bar is not None:
            self._bar.update(step - self._bar.n)

    def ended(self, line: str) -> None:
        self._close()
        self.say(line)

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
