"""From a torch module to a program.

Two traces over fake tensors, which have shapes and no data. The first runs the module, its loss,
`autograd.grad` and the optimizer's rule, and records what torch did. The second replays that record with
in-place changes turned into new values and large operations broken into core ones. `lower.py` then writes the
result down as a program.

The module itself is never run: a copy is, so its parameters, buffers, mode and attributes stay as they are.
"""

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import torch
import torch.fx.traceback as fx_traceback
from torch import Tensor, nn
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention import SDPBackend, sdpa_kernel

from metal_kernels.errors import CaptureError, first_line
from metal_kernels.frontend.blame import ModuleLocation
from metal_kernels.frontend.decompositions import core_table, early_table
from metal_kernels.frontend.losses import LossSpec, loss_function
from metal_kernels.frontend.lower import Slot, lower
from metal_kernels.frontend.optimizers import OptimizerSpec, clipped
from metal_kernels.frontend.randomness import Draws
from metal_kernels.program.graph import DTYPE_NAMES, TORCH_DTYPES, Kind, Program
from metal_kernels.program.validate import SCALARS

Values: TypeAlias = dict[tuple[str, str], Tensor]
"""Tensors by role and key."""

_Step: TypeAlias = Callable[[Values], Values]
_MODULE_ROLES: Final = ("parameter", "buffer", "constant")


def capture_training_step(
    module: nn.Module,
    *,
    loss: LossSpec,
    optimizer: OptimizerSpec,
    example_inputs: Sequence[Tensor],
    example_target: Tensor,
) -> Program:
    """One step of training as one program: loss, gradients, optimizer update, new buffers.

    The module is captured in training mode; the examples give shapes and dtypes, their values do not matter.
    Raises `CaptureError`, or `UnsupportedOp` naming the operation and the submodule that uses it.
    """
    subject = _Subject(module, training=True)
    inputs = subject.slots()
    trained = [slot for slot in inputs if slot.role == "parameter" and slot.tensor.requires_grad]
    inputs += [
        Slot("optimizer", f"{kind}/{slot.key}", slot.tensor.detach())
        for kind in optimizer.slots
        for slot in trained
    ]
    inputs += _example_slots(example_inputs)
    inputs.append(Slot("target", "target", example_target))
    inputs += [
        Slot("scalar", key, torch.ones((), dtype=TORCH_DTYPES[dtype])) for key, dtype in SCALARS.items()
    ]
    draws = Draws()

    def step(values: Values) -> Values:
        draws.begin({key: value for (role, key), value in values.items() if role == "scalar"})
        predictions = subject.run(values)
        total = loss_function(loss)(predictions, values["target", "target"])
        parameters = {slot.key: values["parameter", slot.key] for slot in trained}
        gradients = _gradients(total, parameters)
        results: Values = {("loss", "loss"): total.detach()}
        with torch.no_grad():
            if optimizer.clip_norm is not None:
                gradients = clipped(gradients, optimizer.clip_norm)
            for key, gradient in gradients.items():
                old_slots = tuple(values["optimizer", f"{kind}/{key}"] for kind in optimizer.slots)
                results["parameter", key], new_slots = optimizer.update(
                    parameters[key],
                    gradient,
                    old_slots,
                    lr=values["scalar", "lr"],
                    step=values["scalar", "step"],
                )
                for kind, slot in zip(optimizer.slots, new_slots, strict=True):
                    results["optimizer", f"{kind}/{key}"] = slot
        return results

    return _capture("training_step", subject, inputs, step, draws)


def capture_forward(module: nn.Module, *, example_inputs: Sequence[Tensor]) -> Program:
    """The module's predictions as a program: evaluation mode, so batch norm uses its running statistics."""
    subject = _Subject(module, training=False)

    def step(values: Values) -> Values:
        with torch.no_grad():
            return {("predictions", "predictions"): subject.run(values)}

    return _capture("forward", subject, subject.slots() + _example_slots(example_inputs), step)


class _Subject:
    """A copy of the module that can be run as a function of its state."""

    def __init__(self, module: nn.Module, *, training: bool) -> None:
        try:
            self.module = copy.deepcopy(module)
        except (RuntimeError, TypeError) as error:
            raise CaptureError(f"The module cannot be copied: {first_line(error)}", field="module") from error
        self.module.train(training)
        self.location = ModuleLocation(self.module)

    def slots(self) -> list[Slot]:
        """Parameters, then buffers; those outside the state dict are constants of the program."""
        passing = {
            f"{path}.{name}" if path else name
            for path, part in self.module.named_modules()
            for name in part._non_persistent_buffers_set
        }
        parameters = [Slot("parameter", key, tensor) for key, tensor in self.module.named_parameters()]
        buffers = [
            Slot("constant" if key in passing else "buffer", key, tensor)
            for key, tensor in self.module.named_buffers()
        ]
        return parameters + buffers

    def run(self, values: Values) -> Tensor:
        """Predictions; buffers that the module changed or replaced are changed or replaced in `values`."""
        state = {key: value for (role, key), value in values.items() if role in _MODULE_ROLES}
        arguments = tuple(value for (role, _), value in values.items() if role == "input")
        predictions = torch.func.functional_call(self.module, state, arguments)
        if not isinstance(predictions, Tensor):
            raise CaptureError(
                f"The module must return one tensor, its predictions, not a {type(predictions).__name__}.",
                field="module",
            )
        for role, key in values:
            if role in ("buffer", "constant"):
                values[role, key] = state[key]
        return predictions


def _example_slots(examples: Sequence[Tensor]) -> list[Slot]:
    return [Slot("input", f"input{index}", tensor) for index, tensor in enumerate(examples)]


def _gradients(total: Tensor, parameters: dict[str, Tensor]) -> dict[str, Tensor]:
    """Gradients of the parameters that the loss depends on; others stay, as in torch's optimizers."""
    if not parameters or not total.requires_grad:
        raise CaptureError(
            "No trainable parameter influences the loss, so there is nothing to train.", field="module"
        )
    gradients = torch.autograd.grad(total, list(parameters.values()), allow_unused=True)
    return {
        key: gradient for key, gradient in zip(parameters, gradients, strict=True) if gradient is not None
    }


def _capture(
    kind: Kind, subject: _Subject, slots: list[Slot], step: _Step, draws: Draws | None = None
) -> Program:
    for slot in slots:
        _check_dtype(slot)
    fake_mode = FakeTensorMode(allow_non_fake_inputs=True)
    fakes = [fake_mode.from_tensor(slot.tensor.detach()) for slot in slots]
    for slot, fake in zip(slots, fakes, strict=True):
        fake.requires_grad_(kind == "training_step" and slot.tensor.requires_grad)
    returned: list[tuple[str, str]] = []

    def flat_step(*flat: Tensor) -> list[Tensor]:
        values = {(slot.role, slot.key): value for slot, value in zip(slots, flat, strict=True)}
        results = step(values)
        results |= {where: value for where, value in values.items() if where[0] in ("buffer", "constant")}
        returned[:] = results
        return list(results.values())

    with _quiet_tracing(), subject.location.blamed():
        table = early_table() | (draws.table() if draws else {})
        recorded = make_fx(flat_step, decomposition_table=table, record_stack_traces=True)(*fakes)
        replay = torch.func.functionalize(torch.fx.Interpreter(recorded).run)
        with torch.no_grad():
            pure = make_fx(replay, decomposition_table=core_table())(*(fake.detach() for fake in fakes))
    return lower(pure, kind=kind, slots=slots, returned=returned)


def _check_dtype(slot: Slot) -> None:
    if slot.tensor.dtype not in DTYPE_NAMES:
        raise CaptureError(
            f"'{slot.key}' has dtype {slot.tensor.dtype}; use one of {', '.join(DTYPE_NAMES.values())}.",
            field=slot.key,
        )


@contextlib.contextmanager
def _quiet_tracing() -> Iterator[None]:
    """Leave torch's global state as it was: random numbers, node metadata, the choice of kernels.

    Fused attention and recurrent kernels differ by machine and cannot be taken apart; the plain formulas can.
    """
    mkldnn = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        with (
            torch.random.fork_rng(devices=[]),
            fx_traceback.preserve_node_meta(),
            sdpa_kernel(SDPBackend.MATH),
        ):
            yield
    finally:
        torch._C._set_mkldnn_enabled(mkldnn)
