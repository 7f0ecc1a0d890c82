"""What a buyer sets for a job, typed and bounded; checked again wherever it comes from."""

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from marketplace.catalogue.specs import ModelSpec, spec_parse, spec_to_json
from marketplace.errors import JobInvalid
from metal_kernels.frontend.optimizers import Adam as AdamRule
from metal_kernels.frontend.optimizers import AdamW as AdamWRule
from metal_kernels.frontend.optimizers import OptimizerSpec
from metal_kernels.frontend.optimizers import Sgd as SgdRule
from metal_kernels.program.graph import DeltaBits

MAX_SEED = 2**53 - 1  # what JSON numbers carry everywhere
MAX_BUDGET_MICROUSD = 10**15

Factor = Annotated[float, Meta(ge=0, lt=1)]
LearningRate = Annotated[float, Meta(gt=0, le=10)]
Decay = Annotated[float, Meta(ge=0, le=1)]
ClipNorm = Annotated[float, Meta(gt=0, le=1e6)]  # bound of the norm of all gradients together
LossName = Literal["cross_entropy", "mse", "huber"]
Schedule = Literal["constant", "cosine"]  # of the learning rate, by rounds


class Sgd(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="sgd"):
    """Stochastic gradient descent with momentum."""

    learning_rate: LearningRate = 0.05
    momentum: Factor = 0.9
    weight_decay: Decay = 0.0
    nesterov: bool = False
    clip_norm: ClipNorm | None = None
    schedule: Schedule = "constant"

    def rule(self) -> OptimizerSpec:
        return SgdRule(
            momentum=self.momentum,
            weight_decay=self.weight_decay,
            nesterov=self.nesterov,
            clip_norm=self.clip_norm,
        )


class Adam(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="adam"
):
    """Adam, with weight decay in the gradient."""

    learning_rate: LearningRate = 0.001
    beta1: Factor = 0.9
    beta2: Factor = 0.999
    eps: Annotated[float, Meta(gt=0, le=1)] = 1e-8
    weight_decay: Decay = 0.0
    clip_norm: ClipNorm | None = None
    schedule: Schedule = "constant"

    _rule: ClassVar[type[AdamRule]] = AdamRule

    def rule(self) -> OptimizerSpec:
        return self._rule(
            beta1=self.beta1,
            beta2=self.beta2,
            eps=self.eps,
            weight_decay=self.weight_decay,
            clip_norm=self.clip_norm,
        )


class AdamW(Adam, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="adamw"):
    """Adam with decoupled weight decay."""

    weight_decay: Decay = 0.01

    _rule: ClassVar[type[AdamRule]] = AdamWRule


Optimizer = Sgd | Adam | AdamW


class JobSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything of a job but its dataset. `loss` left out follows from the dataset."""

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    model: ModelSpec
    budget_microusd: Annotated[int, Meta(ge=1, le=MAX_BUDGET_MICROUSD)]
    optimizer: Optimizer = Sgd()
    loss: LossName | None = None
    label_smoothing: Annotated[float, Meta(ge=0, le=0.9)] = 0.0  # of cross_entropy
    batch_size: Annotated[int, Meta(ge=1, le=4096)] = 32
    local_steps: Annotated[int, Meta(ge=1, le=1000)] = 20
    epochs: Annotated[int, Meta(ge=1, le=1000)] = 10
    target_metric: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    validation_split: Annotated[float, Meta(gt=0, le=0.9)] = 0.2
    seed: Annotated[int, Meta(ge=0, le=MAX_SEED)] = 0
    shards_per_round: Annotated[int, Meta(ge=1, le=256)] = 3
    delta_bits: DeltaBits = 8


def settings_parse(data: Any) -> JobSettings:
    """From JSON's builtins; raises JobInvalid or ModelSpecInvalid that names the field."""
    if isinstance(data, dict) and "model" in data:
        spec_parse(data["model"])
    try:
        settings = msgspec.convert(data, JobSettings)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at `$")
        field = place.strip(".`")
        sentence = f"{problem[:1].lower()}{problem[1:]}"
        raise JobInvalid(
            f"{field or 'job'}: {sentence}. Change it accordingly.", field=field or None
        ) from None
    if (
        isinstance(settings.optimizer, Sgd)
        and settings.optimizer.nesterov
        and not settings.optimizer.momentum
    ):
        raise JobInvalid(
            "optimizer.nesterov: needs momentum. Set a momentum above 0, or nesterov to false.",
            field="optimizer.nesterov",
        )
    return settings


def settings_check(settings: JobSettings) -> JobSettings:
    """The same checks for settings that were made in code, where msgspec looks at no bounds."""
    return settings_parse({**msgspec.to_builtins(settings), "model": spec_to_json(settings.model)})


def optimizer_to_json(optimizer: Optimizer) -> dict[str, Any]:
    builtins: dict[str, Any] = msgspec.to_builtins(optimizer)
    return builtins
