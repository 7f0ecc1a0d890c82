"""The text of all kernels of a few small programs, kept in files: a refactor changes none.

`python -m tests.metal_kernels.compiler.test_golden_kernels` writes the files anew; read the difference before you
keep it.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from metal_kernels.compiler.compile import compile_program
from metal_kernels.compiler.compiled import CompiledProgram
from metal_kernels.frontend.capture import capture_forward, capture_training_step
from metal_kernels.frontend.optimizers import Sgd
from metal_kernels.passes.tiles import DeviceClass
from metal_kernels.program.graph import Program

FOLDER = Path(__file__).parent / "golden"
DEVICES: tuple[DeviceClass, ...] = ("cpu", "phone")


def linear_step() -> Program:
    """A training step of one linear layer."""
    return capture_training_step(
        nn.Linear(8, 4),
        loss="cross_entropy",
        optimizer=Sgd(momentum=0.9),
        example_inputs=[torch.zeros(16, 8)],
        example_target=torch.zeros(16, dtype=torch.int64),
    )


def convolution() -> Program:
    module = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
    return capture_forward(module, example_inputs=[torch.zeros(2, 3, 8, 8)])


def norm_and_softmax() -> Program:
    module = nn.Sequential(nn.LayerNorm(64), nn.Softmax(dim=-1))
    return capture_forward(module, example_inputs=[torch.zeros(4, 64)])


PROGRAMS: dict[str, Callable[[], Program]] = {
    "linear_step": linear_step,
    "convolution": convolution,
    "norm_and_softmax": norm_and_softmax,
}


def kernels_text(compiled: CompiledProgram) -> str:
    return f"// {len(compiled.dispatches)} dispatches\n" + "".join(
        f"\n// {kernel.name}, groups {kernel.groups}: WGSL\n{kernel.wgsl}"
        + (f"\n// MSL\n{kernel.msl}" if kernel.msl else "")
        + (f"// MSL with matrices\n{kernel.msl_matrices}" if kernel.msl_matrices else "")
        for kernel in compiled.kernels
    )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_are_what_they_were(name: str, device: DeviceClass) -> None:
    found = kernels_text(compile_program(PROGRAMS[name](), device=device).compiled)
    assert found == (FOLDER / f"{name}.{device}.txt").read_text()


def write() -> None:
    for name, program in PROGRAMS.items():
        for device in DEVICES:
            text = kernels_text(compile_program(program(), device=device).compiled)
            (FOLDER / f"{name}.{device}.txt").write_text(text)


if __name__ == "__main__":
    write()
