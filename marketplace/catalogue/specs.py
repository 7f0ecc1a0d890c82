"""The catalogue's models as data: what a buyer may choose, and the bounds of each choice."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from marketplace.errors import ModelSpecInvalid

Activation = Literal["relu", "gelu", "silu", "tanh"]
Width = Annotated[int, Meta(ge=1, le=4096)]
Dropout = Annotated[float, Meta(ge=0, le=0.9)]  # the share of values that training leaves out at random
Channels = Annotated[int, Meta(ge=1, le=512)]


class Mlp(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="mlp"):
    """Fully connected layers over the flattened input."""

    hidden: Annotated[tuple[Width, ...], Meta(min_length=1, max_length=8)] = (64,)
    activation: Activation = "relu"
    dropout: Dropout = 0.0


class Cnn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="cnn"):
    """Convolutions with batch norm; every layer after the first halves the image. Takes flat rows too."""

    image: tuple[
        Annotated[int, Meta(ge=1, le=16)],
        Annotated[int, Meta(ge=1, le=512)],
        Annotated[int, Meta(ge=1, le=512)],
    ]  # channels, height, width
    channels: Annotated[tuple[Channels, ...], Meta(min_length=1, max_length=6)] = (16, 32)


class Gpt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="gpt"):
    """A small decoder-only transformer over tokens."""

    vocabulary: Annotated[int, Meta(ge=2, le=65_536)]
    context: Annotated[int, Meta(ge=2, le=2048)]
    width: Annotated[int, Meta(ge=8, le=1024)] = 64
    layers: Annotated[int, Meta(ge=1, le=12)] = 2
    heads: Annotated[int, Meta(ge=1, le=16)] = 4
    dropout: Dropout = 0.0


ModelSpec = Mlp | Cnn | Gpt


def spec_parse(data: Any) -> ModelSpec:
    """From JSON's builtins; raises ModelSpecInvalid that names the parameter."""
    try:
        spec: ModelSpec = msgspec.convert(data, ModelSpec)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at `$")
        field = "model" + place.rstrip("`")
        raise ModelSpecInvalid(
            f"{field}: {problem[:1].lower()}{problem[1:]}. See /api/models/.", field=field
        ) from None
    if isinstance(spec, Gpt) and spec.width % spec.heads:
        raise ModelSpecInvalid(
            f"model.heads: {spec.heads} heads do not divide a width of {spec.width}. Choose heads that do.",
            field="model.heads",
        )
    return spec


def spec_to_json(spec: ModelSpec) -> dict[str, Any]:
    builtins: dict[str, Any] = msgspec.to_builtins(spec)
    return builtins


def catalogue_schema() -> list[dict[str, Any]]:
    """For each kind of model: its name, a sentence, and the JSON schema of its parameters."""
    kinds = (Mlp, Cnn, Gpt)
    _, schemas = msgspec.json.schema_components(kinds, ref_template="#/{name}")
    return [
        {
            "kind": kind.__struct_config__.tag,
            "description": schemas[kind.__name__]["description"],
            "parameters": schemas[kind.__name__],
        }
        for kind in kinds
    ]
