"""Torch's own samples of its operations, compiled, run and compared with torch.

`python -m tests.metal_kernels.ops.samples [name ...]` runs all samples and prints the counts by operation.
"""

import sys
import types
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_unflatten

from metal_kernels.compiler.compile import compile_program
from metal_kernels.errors import CaptureError, KernelError, ProgramError, UncompiledOp
from metal_kernels.frontend.capture import capture_forward, capture_training_step
from metal_kernels.frontend.optimizers import Sgd
from metal_kernels.program.graph import Program
from metal_kernels.runtimes.compiled import CompiledRuntime
from metal_kernels.runtimes.reference import initial_state
from tests.metal_kernels.backends import BACKENDS

# Torch's samples live beside its own tests, which need a package that the samples do not.
sys.modules.setdefault("expecttest", types.SimpleNamespace(TestCase=object))  # type: ignore[arg-type]
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

_LISTED = """
    abs add amax amin argmax argmin bmm cat clamp cos cumsum div_no_rounding_mode eq erf exp expand expm1
    flip floor gather ge gt index_select le log log1p log_softmax lt masked_fill max_reduction_with_dim
    maximum mean minimum mm mul ne neg nn.functional.adaptive_avg_pool2d nn.functional.avg_pool2d
    nn.functional.batch_norm nn.functional.conv1d nn.functional.conv2d nn.functional.embedding
    nn.functional.gelu nn.functional.hardswish nn.functional.huber_loss nn.functional.layer_norm
    nn.functional.leaky_relu nn.functional.linear nn.functional.max_pool2d nn.functional.mse_loss
    nn.functional.pad_constant nn.functional.relu nn.functional.rms_norm
    nn.functional.scaled_dot_product_attention nn.functional.silu nn.functional.softplus
    nn.functional.unfold permute pow prod reciprocal repeat reshape round rsqrt rsub sigmoid sign sin
    softmax sqrt squeeze stack std sub sum tanh transpose tril triu unsqueeze var where
"""
NAMES = frozenset(_LISTED.split())

OPERATIONS = {
    name: info
    for info in op_db
    if (name := info.name if not info.variant_test_name else f"{info.name}_{info.variant_test_name}") in NAMES
}


class Call(nn.Module):
    """An operation as a module: floating tensors among its arguments are parameters, if asked, or inputs."""

    def __init__(self, operation: Any, sample: Any, *, trained: bool) -> None:
        super().__init__()
        self.operation = operation
        leaves, self.structure = tree_flatten(((sample.input, *sample.args), sample.kwargs))
        self.fixed = [None if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        self.tensors = {position: leaf for position, leaf in enumerate(leaves) if isinstance(leaf, Tensor)}
        self.trained = [
            position for position, leaf in self.tensors.items() if trained and leaf.is_floating_point()
        ]
        for position in self.trained:
            self.register_parameter(f"p{position}", nn.Parameter(self.tensors[position].detach().clone()))
        self.given = [position for position in self.tensors if position not in self.trained]

    def example_inputs(self) -> list[Tensor]:
        return [self.tensors[position].detach() for position in self.given]

    def forward(self, *inputs: Tensor) -> Tensor:
        leaves = list(self.fixed)
        for position, tensor in zip(self.given, inputs, strict=True):
            leaves[position] = tensor
        for position in self.trained:
            leaves[position] = getattr(self, f"p{position}")
        args, kwargs = tree_unflatten(leaves, self.structure)
        result = self.operation(*args, **kwargs)
        first: Tensor = torch.atleast_1d(result if isinstance(result, Tensor) else result[0])
        return first


def samples(name: str, *, most: int | None = None) -> Iterator[Any]:
    torch.manual_seed(0)
    yield from islice(OPERATIONS[name].sample_inputs("cpu", torch.float32, requires_grad=False), most)


def is_in_scope(sample: Any, result: Any) -> bool:
    """Static shapes of one element at least, in the dtypes of phones."""
    tensors = [
        leaf
        for leaf in tree_flatten((sample.input, sample.args, sample.kwargs, result))[0]
        if isinstance(leaf, Tensor)
    ]
    dtypes = {torch.float32, torch.int64, torch.int32, torch.bool}
    return all(tensor.numel() and tensor.dtype in dtypes for tensor in tensors)


def check_sample(name: str, sample: Any, backend: str) -> str:
    """Compile and compare; 'passed', or why the sample is out of scope. Raises AssertionError on a difference."""
    operation = OPERATIONS[name].op
    try:
        expected = operation(sample.input, *sample.args, **sample.kwargs)
        if not is_in_scope(sample, expected):
            return "out of scope: shape or dtype"
        _check_forward(operation, sample, backend)
        first = torch.atleast_1d(expected if isinstance(expected, Tensor) else expected[0])
        if OPERATIONS[name].supports_autograd and first.is_floating_point():
            _check_gradient(operation, sample, first, backend)
    except (CaptureError, ProgramError, UncompiledOp) as error:
        return f"out of scope: {error.code}"
    return "passed"


def _runtime(program: Program, backend: str) -> CompiledRuntime:
    compilation = compile_program(program, device="cpu")
    return CompiledRuntime(program, compilation.compiled, BACKENDS[backend](compilation))


def _check_forward(operation: Any, sample: Any, backend: str) -> None:
    module = Call(operation, sample, trained=False)
    program = capture_forward(module, example_inputs=module.example_inputs())
    found = _runtime(program, backend).predict({}, *module.example_inputs())
    torch.testing.assert_close(found, module(*module.example_inputs()), rtol=2e-4, atol=2e-5)


def _check_gradient(operation: Any, sample: Any, result: Tensor, backend: str) -> None:
    """One step of gradient descent on the mean squared result moves every argument as torch would."""
    module = Call(operation, sample, trained=True)
    if not module.trained or module.given:
        return
    target = torch.zeros_like(result)
    eager = Call(operation, sample, trained=True)
    try:
        nn.functional.mse_loss(eager(), target).backward()
    except RuntimeError:
        return  # Torch has no gradient for one of the arguments, such as running statistics.
    program = capture_training_step(
        module, loss="mse", optimizer=Sgd(), example_inputs=[], example_target=target
    )
    state = initial_state(module, program)
    run = _runtime(program, backend).train(
        state, inputs=[], target=target, order=[torch.arange(len(target))], lr=lambda step: 1.0
    )
    for key, parameter in eager.named_parameters():
        gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        torch.testing.assert_close(state[key] - run.state[key], gradient, rtol=1e-3, atol=1e-4)


def main(names: Sequence[str]) -> None:
    """Every sample of the named operations, or of all."""
    total: Counter[str] = Counter()
    for name in names or sorted(OPERATIONS):
        counts: Counter[str] = Counter()
        for sample in samples(name):
            try:
                counts[check_sample(name, sample, "wgpu")] += 1
            except (AssertionError, KernelError) as error:
                counts[f"FAILED: {str(error).splitlines()[0]:.90}"] += 1
        total.update({outcome.split(":")[0]: count for outcome, count in counts.items()})
        counted = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
        sys.stdout.write(f"{name:45} {counted}\n")
        sys.stdout.flush()
    sys.stdout.write(f"total {dict(total)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
