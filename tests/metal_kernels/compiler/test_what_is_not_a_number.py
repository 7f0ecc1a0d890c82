"""NaN is written, made and tested for as torch does it, on every backend; no kernel has a constant for it."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from metal_kernels.compiler.compile import compile_program
from metal_kernels.errors import UnsupportedOp
from metal_kernels.frontend.capture import capture_forward
from metal_kernels.runtimes.compiled import CompiledRuntime
from tests.metal_kernels.backends import BACKENDS, DEVICES

NAN = math.nan
NUMBERS = torch.tensor([-2.0, 3.0, NAN])


class Function(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "chosen": lambda x: torch.where(x > 0, x, NAN),
    "everywhere": lambda x: torch.full((3,), NAN),
    "added": lambda x: x + NAN,
    "around": lambda x: functional.pad(x, (1, 1), value=NAN),
    "made of constants": lambda x: torch.log(torch.full((3,), -1.0)) + x,
    "masked": lambda x: torch.masked_fill(x, x > 0, NAN),
    "equal": lambda x: x == NAN,
    "different": lambda x: x != NAN,
    "different from itself": lambda x: x != x,
    "true": lambda x: x.bool(),
    "tested": torch.isnan,
    "replaced": torch.nan_to_num,
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_nan_is_what_it_is_in_torch(name: str, backend: str) -> None:
    program = capture_forward(Function(FUNCTIONS[name]), example_inputs=[NUMBERS])
    compilation = compile_program(program, device=DEVICES[backend])
    runtime = CompiledRuntime(program, compilation.compiled, BACKENDS[backend](compilation))
    torch.testing.assert_close(runtime.predict({}, NUMBERS), FUNCTIONS[name](NUMBERS), equal_nan=True)


@pytest.mark.parametrize(
    "function", [lambda x: x + 2**40, lambda x: x * 2**32, lambda x: x.masked_fill(x > 1, -(2**40))]
)
def test_whole_numbers_that_phones_lack_are_refused_with_the_number(
    function: Callable[[Tensor], Tensor],
) -> None:
    with pytest.raises(UnsupportedOp, match=r"uses the whole number -?[0-9]{10,}, beyond the 32 bits"):
        capture_forward(Function(function), example_inputs=[torch.tensor([1, 2])])


def test_comparing_with_a_number_beyond_32_bits_is_decided_at_once() -> None:
    program = capture_forward(Function(lambda x: x < 2**40), example_inputs=[torch.tensor([1, 2])])
    compilation = compile_program(program)
    found = CompiledRuntime(program, compilation.compiled, BACKENDS["interpreter"](compilation)).predict(
        {}, torch.tensor([1, 2])
    )
    assert found.tolist() == [True, True]
