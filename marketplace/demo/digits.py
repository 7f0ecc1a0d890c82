"""scikit-learn's handwritten digits (real scans, in the package) and the job that the demo posts on them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

TEST_ROWS = 360
SHUFFLE_SEED = 20

JOB: dict[str, Any] = {
    "name": "Handwritten digits",
    "model": {"kind": "mlp", "hidden": [512, 256]},
    "loss": "cross_entropy",
    "optimizer": {"kind": "sgd", "learning_rate": 0.15, "momentum": 0.9, "schedule": "cosine"},
    "batch_size": 16,
    "local_steps": 20,
    "epochs": 20,
    "validation_split": 0.1,
    "seed": 7,
    "shards_per_round": 3,
    "budget_microusd": 5_000_000,
}


@dataclass(frozen=True)
class Digits:
    """Images are float32 (rows, 64) in 0 to 1, labels int64 (rows,)."""

    train_images: npt.NDArray[np.float32]
    train_labels: npt.NDArray[np.int64]
    test_images: npt.NDArray[np.float32]
    test_labels: npt.NDArray[np.int64]

    def save_training(self, path: Path) -> None:
        np.savez_compressed(path, inputs=self.train_images, targets=self.train_labels)

    def test_accuracy(self, model: torch.nn.Module) -> float:
        with torch.no_grad():
            predicted = model(torch.from_numpy(self.test_images)).argmax(1)
        return float((predicted == torch.from_numpy(self.test_labels)).float().mean())


def load_digits() -> Digits:
    from sklearn.datasets import load_digits as load  # heavy; only the demo and its bench need it

    bunch = load()
    order = np.random.default_rng(SHUFFLE_SEED).permutation(len(bunch.target))
    images = (bunch.data[order] / 16).astype(np.float32)
    labels = bunch.target[order].astype(np.int64)
    return Digits(images[TEST_ROWS:], labels[TEST_ROWS:], images[:TEST_ROWS], labels[:TEST_ROWS])
