"""From a model's spec to a module: whether it fits the data, how big it is, and its first parameters."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from marketplace.catalogue.modules import CnnModule, GptModule, MlpModule
from marketplace.catalogue.specs import Cnn, Gpt, Mlp, ModelSpec
from marketplace.errors import ModelDoesNotFit, ModelSpecInvalid

# A phone's page must hold parameters, gradients and optimizer slots several times over.
MAX_PARAMETERS = 30_000_000


@dataclass(frozen=True, slots=True)
class DataShape:
    """What a dataset asks of a model. `outputs` are classes, tokens, or the numbers to predict in a row."""

    task: str
    input_shape: tuple[int, ...]
    outputs: int


def fits(spec: ModelSpec, data: DataShape) -> None:
    """Raises ModelDoesNotFit, saying what the model takes and what the dataset has."""
    has = f"the dataset has rows of shape {list(data.input_shape)}"
    if isinstance(spec, Gpt) != (data.task == "tokens"):
        takes = "tokens" if isinstance(spec, Gpt) else "numbers"
        raise ModelDoesNotFit(
            f"model: this one takes {takes}, but the dataset holds {data.task}. Choose another one of them.",
            field="model",
        )
    if isinstance(spec, Cnn) and math.prod(spec.image) != math.prod(data.input_shape):
        raise ModelDoesNotFit(
            f"model.image: the model takes images of shape {list(spec.image)} ({math.prod(spec.image)} "
            f"values), but {has} ({math.prod(data.input_shape)} values). Set image to match.",
            field="model.image",
        )
    if isinstance(spec, Gpt) and data.input_shape[0] > spec.context:
        raise ModelDoesNotFit(
            f"model.context: the model takes {spec.context} tokens, but {has}. Set context to "
            f"{data.input_shape[0]} or more.",
            field="model.context",
        )
    if isinstance(spec, Gpt) and data.outputs > spec.vocabulary:
        raise ModelDoesNotFit(
            f"model.vocabulary: the model knows {spec.vocabulary} tokens, but the dataset has {data.outputs}. "
            f"Set vocabulary to {data.outputs} or more.",
            field="model.vocabulary",
        )


def build(spec: ModelSpec, *, input_shape: Sequence[int], outputs: int, seed: int) -> nn.Module:
    """The module with first parameters drawn from `seed` alone; torch's global generator is left alone."""
    module = _on_meta(spec, input_shape, outputs).to_empty(device="cpu")
    _initialise(module, torch.Generator().manual_seed(seed))
    return module


def parameter_count(spec: ModelSpec, *, input_shape: Sequence[int], outputs: int) -> int:
    """Without making the parameters; raises ModelSpecInvalid if they are too many."""
    count = sum(p.numel() for p in _on_meta(spec, input_shape, outputs).parameters())
    if count > MAX_PARAMETERS:
        raise ModelSpecInvalid(
            f"model: {count:,} parameters, over the limit of {MAX_PARAMETERS:,}. Choose smaller sizes.",
            field="model",
        )
    return count


def _on_meta(spec: ModelSpec, input_shape: Sequence[int], outputs: int) -> nn.Module:
    with torch.device("meta"):
        match spec:
            case Mlp():
                return MlpModule(
                    inputs=math.prod(input_shape),
                    hidden=spec.hidden,
                    outputs=outputs,
                    activation=spec.activation,
                    dropout=spec.dropout,
                )
            case Cnn():
                return CnnModule(image=spec.image, channels=spec.channels, outputs=outputs)
            case Gpt():
                return GptModule(
                    vocabulary=spec.vocabulary,
                    context=spec.context,
                    width=spec.width,
                    layers=spec.layers,
                    heads=spec.heads,
                    dropout=spec.dropout,
                )


def _initialise(module: nn.Module, generator: torch.Generator) -> None:
    """torch's own defaults for linear and convolution layers, GPT-2's for embeddings."""
    for part in module.modules():
        match part:
            case nn.Linear() | nn.Conv2d():
                nn.init.kaiming_uniform_(part.weight, a=math.sqrt(5), generator=generator)
                if part.bias is not None:
                    bound = 1 / math.sqrt(part.weight[0].numel())
                    nn.init.uniform_(part.bias, -bound, bound, generator=generator)
            case nn.Embedding():
                nn.init.normal_(part.weight, std=0.02, generator=generator)
            case nn.BatchNorm2d() | nn.LayerNorm():
                part.reset_parameters()
            case GptModule():
                nn.init.normal_(part.positions, std=0.02, generator=generator)
