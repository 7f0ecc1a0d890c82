"""What a training run is asked to do: everything that is fixed when it starts."""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from scheduler.errors import RunInvalid

SCHEDULES = ("constant", "cosine")


@dataclass(frozen=True, slots=True)
class DataSlice:
    """One part of the training split, as a blob."""

    sha256: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """The inputs of a run; the field names are those of `scheduler.models.Run`, which explains them."""

    id: UUID
    buyer_id: int
    program_sha256: str
    forward_sha256: str
    validation_sha256: str
    initial_params_sha256: str
    slices: tuple[DataSlice, ...]
    seed: int
    local_steps: int
    batch_size: int
    learning_rate: float
    shards_per_round: int
    rounds_planned: int
    metric: str
    step_flops: float
    step_bytes: float
    step_dispatches: int
    memory_bytes: int
    rates: Mapping[str, int]
    fee_basis_points: int
    budget_microusd: int
    largest_buffer_bytes: int = 0  # 0: unknown
    schedule: str = "constant"
    # DiLoCo's 0.7 and 0.9 suit its hundreds of rounds. Over some tens, as here, less momentum ends closer to training
    # alone; above 1.3 or so, learning rate x (1 + momentum) overshoots in the first rounds.
    outer_learning_rate: float = 0.9
    outer_momentum: float = 0.5
    target_metric: float | None = None

    @property
    def shards_in_a_round(self) -> int:
        """A round never trains one slice twice, so few slices make small rounds."""
        return min(self.shards_per_round, len(self.slices))

    def epoch_order(self, epoch: int) -> tuple[int, ...]:
        """The order of the slices in one epoch: a permutation that depends on the run's seed alone."""
        return tuple(
            sorted(range(len(self.slices)), key=lambda i: derived_seed(self.seed, "epoch", epoch, i))
        )

    def shard_seed(self, round_index: int, shard_index: int) -> int:
        """The seed of a shard's batches, within 32 bits so that every device can use it."""
        return derived_seed(self.seed, "shard", round_index, shard_index) % 2**32


def learning_rate_in_round(base: float, schedule: str, *, round_index: int, rounds_planned: int) -> float:
    """The inner learning rate of a round: `base` throughout, or falling from it along half a cosine to near zero."""
    if schedule == "constant":
        return base
    return base * 0.5 * (1 + math.cos(math.pi * round_index / rounds_planned))


def derived_seed(*parts: object) -> int:
    """64 bits that depend on all the parts: the same on every machine and version of Python."""
    text = "/".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def spec_check(spec: RunSpec) -> None:
    """Raise RunInvalid with the field and the fix unless the run can be scheduled."""
    positive = (
        "local_steps", "batch_size", "learning_rate", "shards_per_round", "rounds_planned", "budget_microusd"
    )  # fmt: skip
    for field in positive:
        if getattr(spec, field) <= 0:
            raise RunInvalid(f"{field} is {getattr(spec, field)}; give a number above zero.", field=field)
    if not spec.slices:
        raise RunInvalid("slices is empty; give at least one slice of training data.", field="slices")
    if not spec.rates:
        raise RunInvalid("rates is empty; give the price of at least one device class.", field="rates")
    if spec.metric not in ("accuracy", "loss"):
        raise RunInvalid(f"metric is {spec.metric!r}; use 'accuracy' or 'loss'.", field="metric")
    if spec.schedule not in SCHEDULES:
        raise RunInvalid(
            f"schedule is {spec.schedule!r}; use one of {', '.join(SCHEDULES)}.", field="schedule"
        )
    if not 0 <= spec.outer_momentum < 1:
        raise RunInvalid("outer_momentum must be at least 0 and below 1.", field="outer_momentum")
