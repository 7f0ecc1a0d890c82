"""The catalogue: specs are bounded, models fit the data or say why not, parameters follow from the seed."""

import pytest
import torch

from marketplace.catalogue.builder import MAX_PARAMETERS, DataShape, build, fits, parameter_count
from marketplace.catalogue.specs import Cnn, Gpt, Mlp, ModelSpec, catalogue_schema, spec_parse, spec_to_json
from marketplace.errors import ModelDoesNotFit, ModelSpecInvalid

IMAGES = DataShape(task="classes", input_shape=(64,), outputs=10)
TEXT = DataShape(task="tokens", input_shape=(16,), outputs=50)
MODELS: dict[str, tuple[ModelSpec, tuple[int, ...], torch.Tensor, tuple[int, ...]]] = {
    "mlp": (Mlp(hidden=(32, 16), activation="gelu"), (64,), torch.ones(3, 64), (3, 10)),
    "cnn": (Cnn(image=(1, 8, 8), channels=(4, 8)), (64,), torch.ones(3, 64), (3, 10)),
    "cnn of images": (Cnn(image=(3, 8, 8)), (3, 8, 8), torch.ones(3, 3, 8, 8), (3, 10)),
    "gpt": (
        Gpt(vocabulary=50, context=16, width=32),
        (16,),
        torch.zeros(3, 12, dtype=torch.int64),
        (3, 12, 50),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_maps_a_batch_to_its_outputs(name):
    spec, input_shape, batch, output_shape = MODELS[name]
    module = build(spec, input_shape=input_shape, outputs=10, seed=1)
    assert module(batch).shape == output_shape
    assert module(batch).isfinite().all()


@pytest.mark.parametrize("name", MODELS)
def test_first_parameters_follow_from_the_seed_alone(name):
    spec, input_shape, _, _ = MODELS[name]
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    one, same, other = (
        build(spec, input_shape=input_shape, outputs=10, seed=seed).state_dict() for seed in (1, 1, 2)
    )
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(torch.equal(one[key], same[key]) for key in one)
    assert any(not torch.equal(one[key], other[key]) for key in one)
    assert all(value.isfinite().all() for value in one.values())


def test_a_gpt_does_not_see_later_tokens():
    module = build(Gpt(vocabulary=50, context=16), input_shape=(16,), outputs=50, seed=1)
    tokens = torch.arange(16)[None]
    changed = tokens.clone()
    changed[0, 10:] = 7
    torch.testing.assert_close(module(tokens)[:, :10], module(changed)[:, :10])
    assert not torch.allclose(module(tokens)[:, 10:], module(changed)[:, 10:])


@pytest.mark.parametrize("name", MODELS)
def test_a_spec_survives_json(name):
    spec = MODELS[name][0]
    assert spec_parse(spec_to_json(spec)) == spec


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({}, "model"),
        ([], "model"),
        ({"kind": "resnet"}, "model.kind"),
        ({"kind": "mlp", "hidden": []}, "model.hidden"),
        ({"kind": "mlp", "hidden": [0]}, "model.hidden[0]"),
        ({"kind": "mlp", "hidden": [64], "activation": "eval"}, "model.activation"),
        ({"kind": "mlp", "dropout": 1.0}, "model.dropout"),
        ({"kind": "mlp", "depth": 3}, "model"),
        ({"kind": "cnn", "image": [1, 8]}, "model.image"),
        ({"kind": "cnn", "image": [1, 8, 10_000]}, "model.image[2]"),
        ({"kind": "gpt", "vocabulary": 50}, "model"),
        ({"kind": "gpt", "vocabulary": 50, "context": 16, "width": 30, "heads": 4}, "model.heads"),
    ],
)
def test_a_spec_out_of_bounds_names_its_parameter(data, field):
    with pytest.raises(ModelSpecInvalid) as caught:
        spec_parse(data)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("spec", "data", "field"),
    [
        (Cnn(image=(1, 9, 9)), IMAGES, "model.image"),
        (Gpt(vocabulary=50, context=16), IMAGES, "model"),
        (Mlp(), TEXT, "model"),
        (Gpt(vocabulary=50, context=8), TEXT, "model.context"),
        (Gpt(vocabulary=49, context=16), TEXT, "model.vocabulary"),
    ],
)
def test_a_model_that_does_not_fit_says_what_to_set(spec, data, field):
    with pytest.raises(ModelDoesNotFit) as caught:
        fits(spec, data)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("spec", "data"),
    [(Mlp(), IMAGES), (Cnn(image=(1, 8, 8)), IMAGES), (Gpt(vocabulary=60, context=20), TEXT)],
)
def test_a_model_that_fits_is_taken(spec, data):
    fits(spec, data)


def test_a_model_too_big_for_a_phone_is_refused_before_it_is_made():
    spec = Mlp(hidden=(4096,) * 8)
    with pytest.raises(ModelSpecInvalid, match=f"{MAX_PARAMETERS:,}"):
        parameter_count(spec, input_shape=(64,), outputs=10)


def test_the_catalogue_lists_every_kind_with_its_parameters():
    listed = {entry["kind"]: entry["parameters"]["properties"] for entry in catalogue_schema()}
    assert set(listed) == {"mlp", "cnn", "gpt"}
    assert listed["mlp"]["activation"]["default"] == "relu"
