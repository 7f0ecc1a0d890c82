"""Suite `training`: the demo's job on three devices, beside the same model trained alone in torch.

Runs `python -m marketplace.demo` as a person would and reads its report; then trains the same module from the same
seed with plain torch for as many samples, on the same rows.
"""

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy

from marketplace.catalogue.builder import build
from marketplace.catalogue.specs import spec_parse
from marketplace.demo.digits import JOB, load_digits
from tests.bench.rows import Row, beside

ROOT = Path(__file__).resolve().parents[2]
FLOAT32_BYTES = 4


def run() -> list[Row]:
    wall_s = _run_demo()
    report = json.loads((ROOT / "var/demo/report.json").read_text())
    alone = _train_alone(samples=report["samples_trained"])
    sent_per_sample = report["delta_bytes"] / report["samples_trained"]
    gradients_per_sample = report["parameters"] * FLOAT32_BYTES / JOB["batch_size"]
    return [
        beside(
            name="digits test accuracy, three devices",
            value=100 * report["test_accuracy"],
            unit="%",
            reference="torch alone, as many samples",
            reference_value=100 * alone,
            target=">= 96",
        ),
        Row(
            name="points below torch alone",
            value=100 * (alone - report["test_accuracy"]),
            unit="points",
            target="<= 0.5",
        ),
        beside(
            name="bytes a device sends per sample",
            value=sent_per_sample,
            unit="B",
            reference="float32 gradients every step",
            reference_value=gradients_per_sample,
            target="ratio <= 0.05",
        ),
        Row(name="the demo, whole", value=wall_s, unit="s", target="< 60"),
        Row(
            name="server memory at most",
            value=report["server_peak_memory_bytes"] / 1e6,
            unit="MB",
            target="< 600",
        ),
    ]


def _run_demo() -> float:
    started = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "marketplace.demo"], cwd=ROOT, env={**os.environ, "DEMO_EXIT": "1"}, check=True
    )
    return time.monotonic() - started


def _train_alone(*, samples: int) -> float:
    """Test accuracy of the demo's model after as many samples of plain torch training, one batch after another."""
    digits = load_digits()
    images, labels = torch.from_numpy(digits.train_images), torch.from_numpy(digits.train_labels)
    model = build(spec_parse(JOB["model"]), input_shape=(64,), outputs=10, seed=JOB["seed"])
    rule = JOB["optimizer"]
    optimizer = torch.optim.SGD(model.parameters(), lr=rule["learning_rate"], momentum=rule["momentum"])
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=samples // JOB["batch_size"])
    order = torch.Generator().manual_seed(JOB["seed"])
    held_out = round(len(labels) * JOB["validation_split"])  # the job trains on no more rows than this leaves
    rows = torch.randperm(len(labels), generator=order)[held_out:]
    steps = samples // JOB["batch_size"]
    for batch in itertools.islice(_batches(rows, order), steps):
        optimizer.zero_grad()
        cross_entropy(model(images[batch]), labels[batch]).backward()
        optimizer.step()
        falling.step()
    return digits.test_accuracy(model.eval())


def _batches(rows: torch.Tensor, order: torch.Generator) -> Iterator[torch.Tensor]:
    """Full batches of row numbers without end, shuffled anew in every epoch."""
    while True:
        shuffled = rows[torch.randperm(len(rows), generator=order)]
        yield from shuffled[: len(rows) // JOB["batch_size"] * JOB["batch_size"]].split(JOB["batch_size"])
