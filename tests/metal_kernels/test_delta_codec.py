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
    DeltaEncoder,
    delta_apply,
    delta_decode,
    delta_encode,
    delta_norm,
    dequantise,
    pack_nibbles,
    quantise,
    tensor_spec,
    unpack_nibbles,
)
from metal_kernels.errors import (
    DeltaError,
    DeltaFormatError,
    DeltaNameMismatch,
    DeltaNotFinite,
    DeltaShapeMismatch,
)
from metal_kernels.program.graph import DeltaBits
from metal_kernels.tensorfile import tensorfile_dumps, tensorfile_loads

VECTORS = json.loads((Path(__file__).parent / "vectors" / "delta.json").read_text())


def model() -> dict[str, torch.Tensor]:
    return {"weight": torch.randn(20, 30), "bias": torch.randn(()), "seen": torch.tensor(7)}


def moved(base: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {
        name: tensor + 0.01 * torch.randn(tensor.shape) if tensor.is_floating_point() else tensor + 20
        for name, tensor in base.items()
    }


BITS = st.sampled_from([4, 8])
ARRAYS = hnp.arrays(
    "float32",
    st.integers(1, 3 * BLOCK),
    elements=st.floats(-(2.0**60), 2.0**60, width=32, allow_subnormal=False),
)


@settings(max_examples=80, deadline=None)
@given(ARRAYS, BITS)
def test_each_element_is_off_by_at_most_half_its_blocks_scale(values, bits):
    tensor = torch.from_numpy(values)
    quantised, scales = quantise(tensor, bits)
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


@pytest.mark.parametrize("bits", [4, 8])
def test_a_delta_takes_its_bits_and_a_fiftieth_of_a_byte_per_parameter(bits):
    base = {"weight": torch.randn(1000, 100)}
    assert len(delta_encode(base, moved(base), bits=bits)) < (bits / 8 + 0.02) * 100_000 + 500


@given(hnp.arrays("int8", st.integers(1, 50), elements=st.integers(-8, 7)))
def test_nibbles_unpack_to_the_steps_that_were_packed(steps):
    unpacked = unpack_nibbles(pack_nibbles(torch.from_numpy(steps)))
    assert unpacked[: len(steps)].tolist() == steps.tolist()
    assert not unpacked[len(steps) :].any()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.floats(-8, 8, width=32), min_size=3, max_size=3), min_size=1, max_size=6), BITS)
def test_deltas_in_a_row_add_up_to_all_that_was_moved_but_the_last_rounding(moves, bits):
    encoder, base, total = DeltaEncoder(bits), {"w": torch.zeros(3)}, torch.zeros(3)
    for move in moves:
        data = encoder.encode(base, {"w": torch.tensor(move)})
        total += delta_decode(data, spec=tensor_spec(base), bits=bits)["w"]
    torch.testing.assert_close(
        total + encoder.residual["w"], torch.tensor(moves).sum(dim=0), rtol=0, atol=1e-4
    )


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


def decode(
    tensors: dict[str, torch.Tensor], *, bits: DeltaBits = 8, **metadata: str
) -> dict[str, torch.Tensor]:
    data = tensorfile_dumps(tensors, metadata={"format": "nightshift.delta", "version": "1"} | metadata)
    return delta_decode(data, spec=tensor_spec(model()), bits=bits)


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


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"int4/weight": torch.zeros(20, 15, dtype=torch.int8)}, DeltaShapeMismatch),
        ({"int4/weight": torch.zeros(600, dtype=torch.int8)}, DeltaShapeMismatch),
        ({"int4/weight": torch.full((300,), 0x08, dtype=torch.int8)}, DeltaFormatError),  # the step -8
        ({"int4/weight": torch.full((300,), -128, dtype=torch.int8)}, DeltaFormatError),
        ({"int4/bias": torch.tensor([0x10], dtype=torch.int8)}, DeltaFormatError),  # a second step of one
        ({"scales/weight": torch.tensor([1.0, math.nan, 1.0])}, DeltaNotFinite),
        ({"int8/weight": torch.zeros(20, 30, dtype=torch.int8)}, DeltaNameMismatch),
    ],
)
def test_a_delta_of_nibbles_that_no_honest_device_would_send_is_refused(change, error):
    honest = dict(tensorfile_loads(delta_encode(model(), moved(model()), bits=4)).tensors)
    assert decode(honest, bits=4)["weight"].shape == (20, 30)
    with pytest.raises(error):
        decode(honest | change, bits=4)


@pytest.mark.parametrize(("sent", "asked"), [(4, 8), (8, 4)])
def test_a_delta_of_other_bits_than_the_program_asks_for_is_refused(sent, asked):
    data = delta_encode(model(), model(), bits=sent)
    with pytest.raises((DeltaNameMismatch, DeltaFormatError)):
        delta_decode(data, spec=tensor_spec(model()), bits=asked)


def test_a_delta_that_lacks_a_tensor_or_is_of_another_format_is_refused():
    tensors = stored()
    del tensors["exact/seen"]
    with pytest.raises(DeltaNameMismatch):
        decode(tensors)
    with pytest.raises(DeltaFormatError):
        decode(stored(), version="2")


@settings(max_examples=60, deadline=None)
@given(st.data(), BITS)
def test_flipped_and_cut_bytes_raise_nothing_but_delta_errors(data, bits):
    base = {"weight": torch.ones(3, 100), "seen": torch.tensor(7)}
    new = {"weight": torch.zeros(3, 100), "seen": torch.tensor(9)}
    original = bytearray(delta_encode(base, new, bits=bits))
    for _ in range(data.draw(st.integers(1, 4))):
        original[data.draw(st.integers(0, len(original) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.one_of(st.just(len(original)), st.integers(0, len(original))))
    with suppress(DeltaError):
        decoded = delta_decode(bytes(original[:end]), spec=tensor_spec(base), bits=bits)
        assert bool(torch.isfinite(decoded["weight"]).all())


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_the_codec_follows_the_published_vectors(vector):
    def tensors(values: dict[str, Any]) -> dict[str, torch.Tensor]:
        return {
            name: torch.tensor(entry["values"], dtype=getattr(torch, entry["dtype"])).reshape(entry["shape"])
            for name, entry in values.items()
        }

    base, new, bits = tensors(vector["base"]), tensors(vector["new"]), vector.get("bits", 8)
    data = delta_encode(base, new, bits=bits)
    assert data.hex() == vector["bytes_hex"]
    decoded = delta_decode(data, spec=tensor_spec(base), bits=bits)
    assert {name: tensor.flatten().tolist() for name, tensor in decoded.items()} == vector["delta"]
