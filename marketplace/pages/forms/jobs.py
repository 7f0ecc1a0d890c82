"""Posting a job. The form starts with values that make a good first job; a newcomer changes nothing.

Fields of one model or optimizer carry its kind as a prefix (`mlp_hidden`, `sgd_momentum`); the page shows those
of the chosen kind. A field left empty means the service's own default, or what the dataset asks for.
"""

import math
import re
from collections.abc import Sequence
from typing import Any

from django import forms

from accounts.models import User
from common.money import parse_usd
from marketplace.models import Dataset
from marketplace.selectors import datasets_of

MODELS = [
    ("mlp", "Fully connected (MLP)"),
    ("cnn", "Convolutions with batch norm (CNN)"),
    ("gpt", "Small transformer (GPT)"),
]
ACTIVATIONS = [("relu", "ReLU"), ("gelu", "GELU"), ("silu", "SiLU"), ("tanh", "tanh")]
SCHEDULES = [("cosine", "Falls to zero"), ("constant", "Stays the same")]
OPTIMIZERS = [("sgd", "SGD with momentum"), ("adam", "Adam"), ("adamw", "AdamW")]
LOSSES = [
    ("", "Automatic"),
    ("cross_entropy", "Cross-entropy"),
    ("mse", "Mean squared error"),
    ("huber", "Huber: outliers pull less"),
]
DELTA_BITS = [(8, "8 bits a number"), (4, "4 bits a number")]
DROPOUT_HELP = "Share of values that training leaves out at random, such as 0.1. Left empty: none."
# AdamW is what transformers are trained with.
FIRST_CHOICE = {"tokens": {"model": "gpt", "optimizer": "adamw"}}


class NumbersField(forms.CharField):
    """Whole numbers with commas between them, or the 'x' of a shape: '64, 32' -> [64, 32]."""

    def clean(self, value: Any) -> list[int] | None:
        text = super().clean(value)
        if not text:
            return None
        try:
            return [int(part) for part in re.split(r"[,x\N{MULTIPLICATION SIGN}]", text)]
        except ValueError:
            raise forms.ValidationError(
                "Give whole numbers with commas between them, such as 64, 32."
            ) from None


class UsdField(forms.CharField):
    """'12.50' -> 12_500_000 micro-USD."""

    def clean(self, value: Any) -> int:
        try:
            return parse_usd(super().clean(value).removeprefix("$").replace(",", ""))
        except ValueError:
            raise forms.ValidationError("Give an amount in USD such as 1.50.") from None


def _number(**more: Any) -> forms.IntegerField:
    return forms.IntegerField(required=False, **more)


def _fraction(**more: Any) -> forms.FloatField:
    return forms.FloatField(required=False, widget=forms.NumberInput(attrs={"step": "any"}), **more)


class JobForm(forms.Form):
    """What `marketplace.jobs` takes, with `settings()` in the shape of its JSON."""

    name = forms.CharField(max_length=100, initial="My first model")
    dataset = forms.ModelChoiceField(queryset=Dataset.objects.none(), empty_label=None)

    model = forms.ChoiceField(label="Kind of model", choices=MODELS, initial="mlp", widget=forms.RadioSelect)
    mlp_hidden = NumbersField(
        required=False, initial="128", label="Hidden layers", help_text="Width of each, from input to output."
    )
    mlp_activation = forms.ChoiceField(required=False, choices=ACTIVATIONS, label="Activation")
    mlp_dropout = _fraction(label="Dropout", help_text=DROPOUT_HELP)
    cnn_image = NumbersField(
        required=False,
        label="Image",
        help_text="Channels, height, width. Left empty: as the dataset's rows are.",
    )
    cnn_channels = NumbersField(
        required=False,
        initial="16, 32",
        label="Channels",
        help_text="Of each layer; each after the first halves the image.",
    )
    gpt_width = _number(initial=64, label="Width")
    gpt_layers = _number(initial=2, label="Layers")
    gpt_heads = _number(initial=4, label="Heads")
    gpt_context = _number(label="Context, tokens", help_text="Left empty: the length of the dataset's rows.")
    gpt_dropout = _fraction(label="Dropout", help_text=DROPOUT_HELP)
    gpt_vocabulary = _number(label="Vocabulary", help_text="Left empty: as many tokens as the dataset has.")

    loss = forms.ChoiceField(
        choices=LOSSES, required=False, help_text="Automatic: the one that suits the dataset."
    )
    optimizer = forms.ChoiceField(choices=OPTIMIZERS, initial="sgd", widget=forms.RadioSelect)
    sgd_learning_rate = _fraction(initial=0.1, label="Learning rate")
    sgd_momentum = _fraction(initial=0.9, label="Momentum")
    adam_learning_rate = _fraction(initial=0.001, label="Learning rate")
    adamw_learning_rate = _fraction(initial=0.001, label="Learning rate")
    adamw_weight_decay = _fraction(initial=0.01, label="Weight decay")
    label_smoothing = _fraction(
        label="Label smoothing",
        help_text="Of cross-entropy: the share of each target spread over all classes, such as 0.1. "
        "Left empty: none.",
    )
    clip_norm = _fraction(
        label="Clip gradients at",
        help_text="The most that the norm of all gradients together may be, such as 1. Left empty: no bound.",
    )
    schedule = forms.ChoiceField(
        choices=SCHEDULES, required=False, initial="cosine", label="Learning rate over time"
    )
    batch_size = _number(initial=16, label="Batch size", help_text="Rows in one step.")

    epochs = _number(initial=20, help_text="Passes over the training rows, all devices together.")
    target_metric = _fraction(
        label="Stop early at",
        help_text="A validation accuracy such as 0.97, or a loss where numbers are predicted.",
    )
    validation_split = _fraction(
        initial=0.2, label="Held out", help_text="Share of the rows kept to measure with."
    )
    seed = _number(initial=0, help_text="The same seed splits and starts the same way.")
    local_steps = _number(
        initial=20, label="Local steps (H)", help_text="Steps a device trains before it sends its change."
    )
    shards_per_round = _number(
        initial=3, label="Devices a round", help_text="Pieces of work that are trained side by side."
    )

    delta_bits = forms.TypedChoiceField(
        choices=DELTA_BITS,
        coerce=int,
        required=False,
        empty_value=None,
        label="Changes sent in",
        help_text="How finely devices tell what they learned. 4 bits halve uploads; the model may learn less well.",
    )

    budget = UsdField(
        initial="1.00",
        label="Budget, USD",
        help_text="The most that this job may cost. You see a quote before anything is set aside.",
    )

    def __init__(self, owner: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["dataset"]
        assert isinstance(field, forms.ModelChoiceField)  # noqa: S101 - for the type checker
        field.queryset = datasets_of(owner)

    @classmethod
    def for_dataset(cls, owner: User, dataset: Dataset) -> "JobForm":
        """A form to start with, its choices fit for `dataset`."""
        return cls(owner, initial={"dataset": dataset.pk, **FIRST_CHOICE.get(dataset.task, {})})

    def settings(self) -> dict[str, Any]:
        """The job's settings as the API takes them."""
        values = self.cleaned_data
        plain = (
            "label_smoothing",
            "batch_size",
            "local_steps",
            "epochs",
            "target_metric",
            "validation_split",
            "seed",
            "shards_per_round",
            "delta_bits",
        )
        return _given(
            name=values["name"],
            model=self._model(values["dataset"]),
            loss=values["loss"],
            optimizer=self._of_kind(values["optimizer"])
            | _given(schedule=values["schedule"], clip_norm=values["clip_norm"]),
            budget_microusd=values["budget"],
            **{name: values[name] for name in plain},
        )

    def field_names(self) -> dict[str, str]:
        """The form's field for each name that a refusal may carry."""
        kinds = [("model", self.cleaned_data.get("model")), ("optimizer", self.cleaned_data.get("optimizer"))]
        own = {
            f"{part}.{name.removeprefix(f'{kind}_')}": name
            for part, kind in kinds
            for name in self.fields
            if name.startswith(f"{kind}_")
        }
        shared = {f"optimizer.{name}": name for name in ("schedule", "clip_norm")}
        return {**own, **shared, "budget_microusd": "budget", "dataset_id": "dataset"}

    def _model(self, dataset: Dataset) -> dict[str, Any]:
        model = self._of_kind(self.cleaned_data["model"])
        if model["kind"] == "cnn":
            model.setdefault("image", image_shape(dataset.input_shape))
        if model["kind"] == "gpt":
            model.setdefault("context", math.prod(dataset.input_shape))
            model.setdefault("vocabulary", dataset.classes or 2)
        return model

    def _of_kind(self, kind: str) -> dict[str, Any]:
        prefix = f"{kind}_"
        own = {
            name.removeprefix(prefix): value
            for name, value in self.cleaned_data.items()
            if name.startswith(prefix)
        }
        return {"kind": kind, **_given(**own)}


def image_shape(input_shape: Sequence[int]) -> list[int]:
    """Channels, height and width of rows of this shape: flat rows of a square number of values are square images."""
    match list(input_shape):
        case [channels, height, width]:
            return [channels, height, width]
        case [height, width]:
            return [1, height, width]
        case other:
            side = math.isqrt(math.prod(other))
            return [1, side, side]


def _given(**values: Any) -> dict[str, Any]:
    """Without what was left empty."""
    return {name: value for name, value in values.items() if value not in (None, "", [])}
