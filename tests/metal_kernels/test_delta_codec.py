"""Parameter deltas: small, exact where they must be, and refused when they are not what was asked for."""

import json
import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from metal_kernels.delta import (
    BLOCK,
    delta_apply,
    delta_decode,
    delta_encode,
    delta_norm,
    dequantise,
    quantise,
    tensor_spec,
)
from metal_kernels.errors import (
    DeltaError,
    DeltaFormatError,
    DeltaNameMismatch,
    DeltaNotFinite,
    DeltaShapeMismatch,
)
from metal_kernels.tensorfile import tensorfile_dumps, tensorfile_loads

VECTORS = json.loads((Path(__file__).parent / "vectors" / "delta.json").read_text())


def model() -> dict[str, torch.Tensor]:
    return {"weight": torch.randn(20, 30), "bias": torch.randn(()), "seen": torch.tensor(7)}


def moved(base: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {
        name: tensor + 0.01 * torch.randn(tensor.shape) if tensor.is_floating_point() else tensor + 20
        for name, tensor in base.items()
    }


@settings(max_examples=80, deadline=None)
@given(
    hnp.arrays(
        "float32",
        st.integers(1, 3 * BLOCK),
        elements=st.floats(-(2.0**60), 2.0**60, width=32, allow_subnormal=False),
    )
)
def test_each_element_is_off_by_at_most_half_its_blocks_scale(values):
    tensor = torch.from_numpy(values)
    quantised, scales = quantise(tensor)
    error = (dequantise(quantised, scales) - tensor).abs()
    bound = scales.repeat_interleave(BLOCK)[: len(tensor)] / 2 * (1 + 1e-5)
    assert bool((error <= bound + 1e-38).all())


def test_a_delta_leads_from_the_base_to_the_new_parameters():
    base = model()
    new = moved(base)
    delta = delta_decode(delta_encode(base, new), spec=tensor_spec(base))
    reached = delta_apply(base, delta)
    assert delta["seen"].item() == 20
    assert reached["seen"].item() == 27
    assert reached["seen"].dtype == torch.int64
    for name in ("weight", "bias"):
        torch.testing.assert_close(reached[name], new[name], rtol=0, atol=5e-4)


def test_a_delta_takes_about_a_byte_per_parameter():
    base = {"weight": torch.randn(1000, 100)}
    assert len(delta_encode(base, moved(base))) < 1.02 * 100_000 + 500


def test_a_block_of_zeros_has_scale_zero_and_stays_zero():
    quantised, scales = quantise(torch.zeros(300))
    assert scales.tolist() == [0, 0]
    assert not quantised.any()


def test_halves_round_to_even():
    quantised, scales = quantise(torch.tensor([127.0, 0.5, 1.5, 2.5, -0.5, -1.5]))
    assert scales.tolist() == [1]
    assert quantised.tolist() == [127, 0, 2, 2, 0, -2]


def test_the_norm_is_over_all_floating_tensors():
    delta = {"a": torch.tensor([3.0]), "b": torch.tensor([[4.0]]), "seen": torch.tensor([100])}
    assert math.isclose(delta_norm(delta), 5)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_delta_with_nan_or_infinity_is_refused_when_encoded(value):
    base = model()
    new = moved(base)
    new["weight"][3, 4] = value
    with pytest.raises(DeltaNotFinite) as caught:
        delta_encode(base, new)
    assert caught.value.field == "weight"
    with pytest.raises(DeltaNotFinite):
        delta_encode(new, base)


def test_models_that_differ_in_names_or_shapes_have_no_delta():
    base = model()
    with pytest.raises(DeltaNameMismatch, match="bias"):
        delta_encode(base, {name: base[name] for name in ("weight", "seen")})
    with pytest.raises(DeltaNameMismatch, match="extra"):
        delta_encode(base, base | {"extra": torch.zeros(1)})
    with pytest.raises(DeltaShapeMismatch):
        delta_encode(base, base | {"bias": torch.zeros(2)})


def stored() -> dict[str, torch.Tensor]:
    return dict(tensorfile_loads(delta_encode(model(), model())).tensors)


def decode(tensors: dict[str, torch.Tensor], **metadata: str) -> dict[str, torch.Tensor]:
    data = tensorfile_dumps(tensors, metadata={"format": "nightshift.delta", "version": "1"} | metadata)
    return delta_decode(data, spec=tensor_spec(model()))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"int8/weight": torch.zeros(30, 20, dtype=torch.int8)}, DeltaShapeMismatch),
        ({"int8/weight": torch.zeros(20, 30)}, DeltaShapeMismatch),
        ({"scales/weight": torch.zeros(2)}, DeltaShapeMismatch),
        ({"exact/seen": torch.zeros((), dtype=torch.int32)}, DeltaShapeMismatch),
        ({"scales/weight": torch.tensor([1.0, math.nan, 1.0])}, DeltaNotFinite),
        ({"scales/weight": torch.tensor([1.0, math.inf, 1.0])}, DeltaNotFinite),
        ({"scales/weight": torch.full((3,), 3e38)}, DeltaNotFinite),
        ({"scales/weight": torch.tensor([1.0, -1.0, 1.0])}, DeltaFormatError),
        ({"int8/weight": torch.full((20, 30), -128, dtype=torch.int8)}, DeltaFormatError),
        ({"int8/other": torch.zeros(1, dtype=torch.int8)}, DeltaNameMismatch),
        ({"int8/other": torch.zeros(10_000, dtype=torch.int8)}, DeltaFormatError),
    ],
)
def test_a_delta_that_no_honest_device_would_send_is_refused(change, error):
    with pytest.raises(error):
        decode({**stored(), "int8/weight": torch.full((20, 30), 127, dtype=torch.int8)} | change)


def test_a_delta_that_lacks_a_tensor_or_is_of_another_format_is_refused():
    tensors = stored()
    del tensors["exact/seen"]
    with pytest.raises(DeltaNameMismatch):
        decode(tensors)
    with pytest.raises(DeltaFormatError):
        decode(stored(), version="2")


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_flipped_and_cut_bytes_raise_nothing_but_delta_errors(data):
    base = {"weight": torch.ones(3, 100), "seen": torch.tensor(7)}
    original = bytearray(delta_encode(base, {"weight": torch.zeros(3, 100), "seen": torch.tensor(9)}))
    for _ in range(data.draw(st.integers(1, 4))):
        original[data.draw(st.integers(0, len(original) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.one_of(st.just(len(original)), st.integers(0, len(original))))
    with suppress(DeltaError):
        decoded = delta_decode(bytes(original[:end]), spec=tensor_spec(base))
        assert bool(torch.isfinite(decoded["weight"]).all())


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_the_codec_follows_the_published_vectors(vector):
    def tensors(values: dict[str, Any]) -> dict[str, torch.Tensor]:
        return {
            name: torch.tensor(entry["values"], dtype=getattr(torch, entry["dtype"])).reshape(entry["shape"])
            for name, entry in values.items()
        }

    base, new = tensors(vector["base"]), tensors(vector["new"])
    data = delta_encode(base, new)
    assert data.hex() == vector["bytes_hex"]
    decoded = delta_decode(data, spec=tensor_spec(base))
    assert {name: tensor.flatten().tolist() for name, tensor in decoded.items()} == vector["delta"]
