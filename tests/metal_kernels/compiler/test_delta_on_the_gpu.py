"""The GPU encodes parameter deltas to the same bytes as the codec, and keeps what rounding loses."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from metal_kernels.compiler.compile import Compilation
from metal_kernels.compiler.delta import compile_delta
from metal_kernels.delta import dequantise, quantise, tensor_spec, unpack_nibbles
from metal_kernels.program.graph import DeltaBits
from metal_kernels.runtimes.compiled import Backend, StepNumbers
from tests.metal_kernels.backends import BACKENDS

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "delta.json").read_text())


class Encoder:
    """The tensors of a delta on one backend."""

    def __init__(self, base: dict[str, Tensor], backend: str, bits: DeltaBits) -> None:
        self.base = base
        self.bits = bits
        self.compilation: Compilation = compile_delta(tensor_spec(base), bits=bits)
        self.backend: Backend = BACKENDS[backend](self.compilation)
        self.place = {
            buffer.key: position
            for position, buffer in enumerate(self.compilation.compiled.buffers)
            if buffer.role != "scratch"
        }
        for position, buffer in enumerate(self.compilation.compiled.buffers):
            if buffer.role != "input":
                self.backend.reserve(position, buffer.elements)

    def encode(self, new: dict[str, Tensor]) -> dict[str, tuple[Tensor, Tensor]]:
        for name, tensor in self.base.items():
            if tensor.is_floating_point():
                self.backend.write(self.place[f"base/{name}"], tensor.flatten().numpy())
                self.backend.write(self.place[f"new/{name}"], new[name].flatten().numpy())
        self.backend.run([StepNumbers(0.0, 0.0, 0)])
        return {name: self._read(name) for name, tensor in self.base.items() if tensor.is_floating_point()}

    def residual(self, name: str) -> Tensor:
        elements = self.base[name].numel()
        return torch.from_numpy(
            self.backend.read(self.place[f"residual/{name}"], elements).view(np.float32).copy()
        )

    def _read(self, name: str) -> tuple[Tensor, Tensor]:
        blocks = -(-self.base[name].numel() // 256)
        words = self.backend.read(self.place[f"int{self.bits}/{name}"], blocks * 256 * self.bits // 32)
        scales = self.backend.read(self.place[f"scales/{name}"], blocks)
        stored = torch.from_numpy(words.view(np.int8).copy())
        quantised = stored if self.bits == 8 else unpack_nibbles(stored)
        assert not quantised[self.base[name].numel() :].any()
        return quantised[: self.base[name].numel()], torch.from_numpy(scales.view(np.float32).copy())


def tensors(described: dict[str, Any]) -> dict[str, Tensor]:
    return {
        name: torch.tensor(entry["values"], dtype=getattr(torch, entry["dtype"])).reshape(entry["shape"])
        for name, entry in described.items()
    }


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_the_vectors_give_the_codecs_numbers(vector: dict[str, Any], backend: str) -> None:
    base, new = tensors(vector["base"]), tensors(vector["new"])
    if not any(tensor.is_floating_point() for tensor in base.values()):
        pytest.skip("this vector has only exact tensors")
    bits: DeltaBits = vector.get("bits", 8)
    for name, (quantised, scales) in Encoder(base, backend, bits).encode(new).items():
        expected, expected_scales = quantise(new[name] - base[name], bits)
        assert torch.equal(quantised, expected.flatten())
        assert torch.equal(scales, expected_scales)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("backend", BACKENDS)
def test_what_rounding_loses_goes_into_the_next_delta(backend: str, bits: DeltaBits) -> None:
    torch.manual_seed(0)
    base = {"w": torch.zeros(300)}
    encoder = Encoder(base, backend, bits)
    goal = torch.randn(300)
    received = torch.zeros(300)
    for _ in range(3):
        quantised, scales = encoder.encode({"w": goal})["w"]
        received += dequantise(quantised, scales)
    torch.testing.assert_close(received + encoder.residual("w"), 3 * goal, rtol=1e-5, atol=1e-5)
    assert encoder.residual("w").abs().max() <= scales.max()
