"""Suite `browser`: a training step of our kernels beside jax-js and tfjs, in Chromium's WebGPU on SwiftShader.

All train the same models on one batch with SGD and momentum, in pages of `peers/`. A run takes turns: each round
opens a new browser for each page, and the best round counts, since other work on the machine only makes a step
slower. Ours is the wall time of a whole shard, with sending and reading back; theirs is that of their steps and of
reading the last loss.
"""

import shutil
import subprocess
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import torch
from playwright.sync_api import BrowserType, sync_playwright

from metal_kernels.compiler.compile import compile_program
from metal_kernels.compiler.format import compiled_dumps
from metal_kernels.frontend.capture import capture_training_step
from metal_kernels.frontend.optimizers import Sgd
from metal_kernels.runtimes.reference import initial_state, optimizer_zeros
from metal_kernels.tensorfile import tensorfile_dumps
from tests.bench.kernels import SUBJECTS, Subject
from tests.bench.rows import FOLDER, Row, beside
from tests.chromium import launch
from tests.static_site import static_site

PAGES: Final = Path(__file__).parent / "peers"
STATIC: Final = Path(__file__).resolve().parents[2] / "worker_protocol" / "static"
PEERS: Final = FOLDER.parent / "peers"
POLICY: Final = "default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'"
"""The peers make code while they run."""

ROUNDS: Final = 2


@dataclass(frozen=True)
class Contest:
    """One model, how many steps are timed, and what the bound is beside each peer."""

    subject: str
    steps: int
    targets: dict[str, str | None]


CONTESTS: Final = (
    Contest("MLP", 10, {"jaxjs": "ratio <= 0.8", "tfjs": None}),
    Contest("CNN", 3, {"jaxjs": "ratio <= 0.35", "tfjs": None}),
    Contest("GPT", 2, {"jaxjs": "ratio < 1"}),
)
SUBJECT: Final = {subject.name: replace(subject, optimizer=Sgd(momentum=0.9)) for subject in SUBJECTS}


def run() -> list[Row]:
    _install_peers()
    with tempfile.TemporaryDirectory(prefix="nightshift-browser-") as folder:
        files = Path(folder)
        for contest in CONTESTS:
            _write_shard(SUBJECT[contest.subject], files)
        served = {"/static/": STATIC, "/files/": files, "/node_modules/": PEERS / "node_modules", "/": PAGES}
        with static_site(served, policy=POLICY) as address, sync_playwright() as playwright:
            return [row for contest in CONTESTS for row in _rows(playwright.chromium, contest, address)]


def _rows(kind: BrowserType, contest: Contest, address: str) -> list[Row]:
    pages = ["nightshift", *contest.targets]
    best_ms = dict.fromkeys(pages, float("inf"))
    for _ in range(ROUNDS):
        for page in pages:
            measured = measure(kind, f"{address}/{page}.html", contest)
            best_ms[page] = min(best_ms[page], measured["msPerStep"])
    return [
        beside(
            name=f"{contest.subject} step", value=best_ms["nightshift"], unit="ms",
            reference=peer, reference_value=best_ms[peer], target=target,
        )
        for peer, target in contest.targets.items()
    ]  # fmt: skip


def measure(kind: BrowserType, url: str, contest: Contest) -> dict[str, Any]:
    """What the page's `measure` returns; a step that does not learn is no measurement."""
    with launch(kind) as browser:
        page = browser.new_page()
        page.goto(url)
        asked = [contest.subject.lower(), contest.steps]
        measured: dict[str, Any] = page.evaluate("([subject, steps]) => measure(subject, steps)", asked)
    first, last = measured["losses"]
    if not last < first:
        raise RuntimeError(f"{url}: the loss went from {first} to {last}; it should fall on one batch.")
    return measured


def _write_shard(subject: Subject, folder: Path) -> None:
    torch.manual_seed(0)
    module, inputs, target = subject.module(), subject.inputs(), subject.target()
    program = capture_training_step(
        module,
        loss="cross_entropy",
        optimizer=subject.optimizer,
        example_inputs=[inputs],
        example_target=target,
    )
    zeros = optimizer_zeros(program)
    params = {key: tensor for key, tensor in initial_state(module, program).items() if key not in zeros}
    name = subject.name.lower()
    compiled = compile_program(program, device="cpu").compiled
    (folder / f"{name}.program").write_bytes(compiled_dumps(program, {"cpu": compiled}))
    (folder / f"{name}.params").write_bytes(tensorfile_dumps(params))
    (folder / f"{name}.slice").write_bytes(tensorfile_dumps({"inputs": inputs, "targets": target}))


def _install_peers() -> None:
    """The frameworks of `peers/package.json` in var/peers; their install scripts are not run."""
    wanted = PAGES / "package.json"
    installed = PEERS / "package.json"
    if installed.exists() and installed.read_bytes() == wanted.read_bytes():
        return
    if shutil.which("npm") is None:
        raise RuntimeError("The suite browser needs npm for the frameworks it measures: apt-get install npm")
    PEERS.mkdir(parents=True, exist_ok=True)
    command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
    shutil.copy(wanted, PEERS / "package.json")
    try:
        subprocess.run(command, cwd=PEERS, check=True)
    except subprocess.CalledProcessError:
        installed.unlink()
        raise
