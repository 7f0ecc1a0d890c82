"""Torch's own samples of its operations, compiled, run and compared with torch.

`python -m tests.metal_kernels.ops.samples [--most N] [--write] [name ...]` runs all samples (or N of each operation)
on wgpu and prints the counts by operation; with `--write`, the table in docs/kernels.md is written anew.
"""

import argparse
import re
import sys
import types
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_unflatten

from metal_kernels.compiler.compile import compile_program
from metal_kernels.errors import CaptureError, KernelError, ProgramError, UnsupportedOp
from metal_kernels.frontend.capture import capture_forward, capture_training_step
from metal_kernels.frontend.optimizers import Sgd
from metal_kernels.program.graph import Program
from metal_kernels.program.ops import OPS
from metal_kernels.runtimes.compiled import CompiledRuntime
from metal_kernels.runtimes.reference import initial_state
from tests.metal_kernels.backends import BACKENDS, DEVICES

# Torch's samples live beside its own tests, which need a package that the samples do not.
sys.modules.setdefault("expecttest", types.SimpleNamespace(TestCase=object))  # type: ignore[arg-type]
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

_LISTED = """
    abs acos acosh add addbmm addcdiv addcmul addmm addmm_decomposed addmv addr all amax amin any argmax argmin
    asin asinh atan atan2 atanh baddbmm bitwise_and bitwise_left_shift bitwise_not bitwise_or bmm broadcast_to
    bucketize cat chunk clamp clamp_max clamp_min clone contiguous cos cosh cumprod cumsum diff div_floor_rounding
    div_no_rounding_mode div_trunc_rounding dot einsum eq erf erfc exp exp2 expand expand_as expm1 fill flatten
    flip fliplr flipud float_power floor floor_divide fmax fmin fmod frac full_like gather ge gt hypot index_add
    index_put index_select isclose isfinite isinf isnan le lerp log log10 log1p log2 log_softmax logaddexp
    logical_and logical_not logical_or logical_xor logsumexp lt masked_fill matmul max_binary
    max_reduction_no_dim max_reduction_with_dim maximum mean min_binary min_reduction_no_dim
    min_reduction_with_dim minimum mm movedim mul mv narrow ne neg
    nn.functional.adaptive_avg_pool1d nn.functional.adaptive_avg_pool2d nn.functional.adaptive_max_pool2d
    nn.functional.avg_pool1d nn.functional.avg_pool2d nn.functional.batch_norm nn.functional.bilinear
    nn.functional.binary_cross_entropy_with_logits nn.functional.celu nn.functional.conv1d
    nn.functional.conv2d nn.functional.conv_transpose1d nn.functional.conv_transpose2d
    nn.functional.cosine_similarity nn.functional.cross_entropy nn.functional.elu nn.functional.embedding
    nn.functional.gelu nn.functional.glu nn.functional.group_norm nn.functional.hardshrink
    nn.functional.hardsigmoid nn.functional.hardswish nn.functional.hardtanh nn.functional.huber_loss
    nn.functional.instance_norm nn.functional.interpolate_bilinear nn.functional.interpolate_nearest
    nn.functional.kl_div nn.functional.l1_loss nn.functional.layer_norm nn.functional.leaky_relu
    nn.functional.linear nn.functional.logsigmoid nn.functional.max_pool1d nn.functional.max_pool2d
    nn.functional.mish nn.functional.mse_loss nn.functional.nll_loss nn.functional.normalize
    nn.functional.one_hot nn.functional.pad_circular nn.functional.pad_constant nn.functional.pad_reflect
    nn.functional.pairwise_distance nn.functional.pixel_shuffle nn.functional.pixel_unshuffle
    nn.functional.prelu nn.functional.relu nn.functional.relu6 nn.functional.rms_norm
    nn.functional.scaled_dot_product_attention nn.functional.selu nn.functional.silu
    nn.functional.smooth_l1_loss nn.functional.softplus nn.functional.softshrink nn.functional.softsign
    nn.functional.tanhshrink nn.functional.threshold nn.functional.unfold nn.functional.upsample_bilinear
    nn.functional.upsample_nearest norm ones_like outer permute pow prod ravel reciprocal remainder repeat
    reshape roll round rsqrt rsub scatter scatter_add select select_scatter sigmoid sign sin sinh slice
    slice_scatter softmax split split_with_sizes sqrt square squeeze stack std std_mean sub sum sum_to_size
    take_along_dim tan tanh tile transpose tril triu true_divide trunc unbind unflatten unsqueeze var var_mean
    view where xlogy zeros_like
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
    """In float32, or in int64 where torch has the operation for whole numbers only."""
    torch.manual_seed(0)
    operation = OPERATIONS[name]
    dtype = torch.float32 if torch.float32 in operation.dtypes else torch.int64
    yield from islice(operation.sample_inputs("cpu", dtype, requires_grad=False), most)


def is_in_scope(sample: Any, result: Any) -> bool:
    """Static shapes of one element at least, in the dtypes of phones."""
    tensors = [
        leaf
        for leaf in tree_flatten((sample.input, sample.args, sample.kwargs, result))[0]
        if isinstance(leaf, Tensor)
    ]
    dtypes = {torch.float32, torch.int64, torch.int32, torch.bool}
    return all(tensor.numel() and tensor.dtype in dtypes for tensor in tensors)


REACHED: Counter[str] = Counter()
"""How many compiled programs had each operation of the allow-list."""


def check_sample(name: str, sample: Any, backend: str) -> str:
    """Compile and compare; 'passed', or why the sample is out of scope. Raises AssertionError on a difference."""
    operation = OPERATIONS[name].op
    try:
        expected = operation(sample.input, *sample.args, **sample.kwargs)
        if not is_in_scope(sample, expected):
            return "out of scope: shape or dtype"
        first = torch.atleast_1d(expected if isinstance(expected, Tensor) else expected[0])
        for one in (backend, "interpreter") if first.isnan().any() else (backend,):
            _check_forward(operation, sample, one)
            if OPERATIONS[name].supports_autograd and first.is_floating_point():
                _check_gradient(operation, sample, first, one)
    except UnsupportedOp as error:
        operation_name = re.search(r"'(aten\.[^']*)'", error.message)
        return f"out of scope: {operation_name.group(1) if operation_name else error.code}"
    except (CaptureError, ProgramError) as error:
        return f"out of scope: {error.code}"
    return "passed"


def _runtime(program: Program, backend: str) -> CompiledRuntime:
    compilation = compile_program(program, device=DEVICES[backend])
    REACHED.update({node.op for node in program.graph.nodes})
    return CompiledRuntime(program, compilation.compiled, BACKENDS[backend](compilation))


def _check_forward(operation: Any, sample: Any, backend: str) -> None:
    module = Call(operation, sample, trained=False)
    program = capture_forward(module, example_inputs=module.example_inputs())
    found = _runtime(program, backend).predict({}, *module.example_inputs())
    _assert_close(found, module(*module.example_inputs()), backend, rtol=2e-4, atol=2e-5)


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
        told = state[key].isfinite()  # What is no number moves nowhere, whatever its gradient.
        moved = (state[key] - run.state[key])[told]
        _assert_close(moved, gradient[told], backend, rtol=1e-3, atol=1e-4)


def _assert_close(found: Tensor, expected: Tensor, backend: str, *, rtol: float, atol: float) -> None:
    """Where torch has a NaN, a GPU's driver may have any number: it may take `0 * NaN` for 0, as WGSL allows."""
    told = ~expected.isnan() if backend == "wgpu" else torch.ones_like(expected, dtype=torch.bool)
    torch.testing.assert_close(found[told], expected[told], rtol=rtol, atol=atol, equal_nan=True)


@dataclass
class Counts:
    """What became of an operation's samples."""

    ran: int = 0
    passed: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    out_of_scope: Counter[str] = field(default_factory=Counter)

    def line(self, name: str) -> str:
        why = "; ".join(f"{count} {reason}" for reason, count in sorted(self.out_of_scope.items()))
        return f"| {name} | {self.ran} | {self.passed} | {self.out_of_scope.total()} | {why} |"


def count_samples(name: str, *, most: int | None, backend: str = "wgpu") -> Counts:
    counts = Counts()
    for sample in samples(name, most=most):
        counts.ran += 1
        try:
            outcome, _, reason = check_sample(name, sample, backend).partition(": ")
        except (AssertionError, KernelError) as error:
            counts.failed[str(error).strip().splitlines()[0][:200]] += 1
            continue
        if outcome == "passed":
            counts.passed += 1
        else:
            counts.out_of_scope[reason] += 1
    return counts


DOCS = Path(__file__).parents[3] / "docs" / "kernels.md"
_TABLE = re.compile(r"(?<=<!-- samples -->\n).*(?=<!-- end of samples -->)", re.DOTALL)


def unreached() -> list[str]:
    """Operations of the allow-list that no sample needed."""
    return sorted(OPS.keys() - REACHED.keys())


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, help="samples of each operation at most")
    parser.add_argument("--write", action="store_true", help="write the table into docs/kernels.md")
    parser.add_argument("names", nargs="*", help="operations; all of them if left out")
    options = parser.parse_args(arguments)
    lines = ["| operation | ran | passed | out of scope | why |", "|---|---|---|---|---|"]
    total = Counts()
    for name in options.names or sorted(OPERATIONS):
        counts = count_samples(name, most=options.most)
        total.ran, total.passed = total.ran + counts.ran, total.passed + counts.passed
        total.out_of_scope.update({"": counts.out_of_scope.total()})
        total.failed.update(counts.failed)
        lines.append(counts.line(name))
        failures = "".join(f"    FAILED {count}: {reason}\n" for reason, count in counts.failed.items())
        sys.stdout.write(f"{lines[-1]}\n{failures}")
        sys.stdout.flush()
    lines.append(f"| **all** | {total.ran} | {total.passed} | {total.out_of_scope.total()} | |")
    missing = ", ".join(f"`{name.removeprefix('aten.')}`" for name in unreached()) or "none"
    sys.stdout.write(f"{lines[-1]}\nfailed: {total.failed.total()}\nnot reached: {missing}\n")
    if options.write:
        table = "\n".join(lines) + f"\n\nOperations of the allow-list that no sample needed: {missing}.\n"
        DOCS.write_text(_TABLE.sub(lambda _: table, DOCS.read_text()))


if __name__ == "__main__":
    main(sys.argv[1:])
