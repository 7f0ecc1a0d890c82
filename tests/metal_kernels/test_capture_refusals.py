"""What cannot be captured is refused with the operation, where it is used, and what to use instead."""

import pytest
import torch
from torch import nn

from metal_kernels.errors import CaptureError, UnsupportedOp
from metal_kernels.frontend.capture import capture_forward, capture_training_step
from metal_kernels.frontend.optimizers import AdamW, Sgd
from tests.metal_kernels.models import Mlp


def capture(module: nn.Module, *, loss="cross_entropy", target=None, inputs=None):
    return capture_training_step(
        module,
        loss=loss,
        optimizer=Sgd(),
        example_inputs=[torch.zeros(2, 64) if inputs is None else inputs],
        example_target=torch.zeros(2, dtype=torch.int64) if target is None else target,
    )


class Sorting(nn.Module):
    def forward(self, x):
        return x.sort(-1).values


class Branching(nn.Module):
    def forward(self, x):
        return x if x.sum().item() > 0 else -x


class Selecting(nn.Module):
    def forward(self, x):
        return x[x > 0]


class Noise(nn.Module):
    def forward(self, x):
        return x + torch.randn_like(x)


def test_an_unshared_generator_is_refused_with_its_place():
    module = nn.Sequential(Mlp(), Noise())
    with pytest.raises(UnsupportedOp, match=r"in submodule '1' .*use torch\.rand") as caught:
        capture(module)
    assert caught.value.field == "1"


def test_dropout_is_nothing_in_a_forward_program():
    assert capture_forward(nn.Sequential(Mlp(), nn.Dropout(0.5)), example_inputs=[torch.zeros(2, 64)])


@pytest.mark.parametrize(
    ("part", "operation", "advice"),
    [
        (Sorting(), "aten.sort", "amax"),
        (Branching(), "aten._local_scalar_dense", "keep the value a tensor"),
        (Selecting(), "aten.nonzero", "torch.where"),
    ],
)
def test_an_unsupported_operation_is_named_with_its_submodule_line_and_advice(part, operation, advice):
    module = nn.Sequential(nn.Linear(64, 10), nn.Sequential(part))
    with pytest.raises(UnsupportedOp) as caught:
        capture(module)
    assert caught.value.field == "1.0"
    assert operation in caught.value.message
    assert "submodule '1.0'" in caught.value.message
    assert "test_capture_refusals.py:" in caught.value.message
    assert advice in caught.value.message


def test_a_module_that_does_not_fit_its_inputs_is_refused_with_torchs_reason():
    with pytest.raises(CaptureError, match=r"submodule '0'.*\[2, 63\] X \[64, 32\]"):
        capture(Mlp(), inputs=torch.zeros(2, 63))


def test_a_module_that_returns_no_tensor_is_refused():
    class Pair(nn.Module):
        def forward(self, x):
            return x, x

    with pytest.raises(CaptureError, match="one tensor"):
        capture_forward(Pair(), example_inputs=[torch.zeros(2, 64)])


@pytest.mark.parametrize(
    ("loss", "target", "reason"),
    [
        ("cross_entropy", torch.zeros(2), "int64 class indices"),
        ("cross_entropy", torch.zeros(3, dtype=torch.int64), "int64 class indices"),
        ("mse", torch.zeros(2, 9), "Mean squared error"),
        ("mse", torch.zeros(2, 10, dtype=torch.int64), "Mean squared error"),
    ],
)
def test_a_target_that_does_not_fit_the_loss_is_refused(loss, target, reason):
    with pytest.raises(CaptureError, match=reason) as caught:
        capture(Mlp(), loss=loss, target=target)
    assert caught.value.field == "target"


def test_an_unknown_loss_is_refused():
    with pytest.raises(CaptureError, match="use one of cross_entropy, mse"):
        capture(Mlp(), loss="hinge")


def test_double_precision_is_refused():
    with pytest.raises(CaptureError, match="float64") as caught:
        capture(Mlp().double(), inputs=torch.zeros(2, 64, dtype=torch.float64))
    assert caught.value.field == "0.weight"


def test_a_value_of_another_dtype_inside_the_module_is_refused_with_its_place():
    class Widened(Mlp):
        def forward(self, x):
            return self.get_submodule("0")(x).double().float()

    with pytest.raises(CaptureError, match=r"test_capture_refusals\.py:.*float64"):
        capture(Widened())


def test_a_module_without_trainable_parameters_is_refused():
    with pytest.raises(CaptureError, match="nothing to train"):
        capture(Mlp().requires_grad_(False))


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Sgd(momentum=1.0), "momentum"),
        (lambda: Sgd(weight_decay=-0.1), "weight_decay"),
        (lambda: Sgd(nesterov=True), "nesterov"),
        (lambda: AdamW(beta1=1.0), "beta1"),
        (lambda: AdamW(beta2=-0.1), "beta2"),
        (lambda: AdamW(eps=0.0), "eps"),
        (lambda: AdamW(weight_decay=-1.0), "weight_decay"),
    ],
)
def test_an_impossible_optimizer_is_refused(make, field):
    with pytest.raises(CaptureError) as caught:
        make()
    assert caught.value.field == field
