"""Ordinary torch modules can be captured, and a captured step gives what torch gives."""

import copy

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  # torch's own convention
from torch import Tensor, nn

from metal_kernels.errors import CaptureError
from metal_kernels.frontend.capture import capture_forward, capture_training_step
from metal_kernels.frontend.optimizers import AdamW, Sgd
from metal_kernels.program.format import program_dumps
from metal_kernels.runtimes.reference import ReferenceRuntime, initial_state
from tests.metal_kernels.models import Cnn, Gpt, Mlp


class Apply(nn.Module):
    """A linear layer and then a function."""

    def __init__(self, function) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 6)
        self.function = function

    def forward(self, x):
        return self.function(self.linear(x))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.GRU(6, 4, batch_first=True)

    def forward(self, x):
        return self.cells(x)[0]


def set_first_row(x: Tensor) -> Tensor:
    changed = x.clone()
    changed[0] = 0.0
    return changed


ROWS = torch.linspace(-1, 1, 24).reshape(4, 6)
SEQUENCES = torch.linspace(-1, 1, 60).reshape(2, 5, 6)
IMAGES = torch.linspace(-1, 1, 512).reshape(2, 4, 8, 8)
MODULES = {
    "chunk": (Apply(lambda x: torch.cat(x.chunk(2, -1))), ROWS),
    "negative slice": (Apply(lambda x: x[:, -2:] + x[:, ::3]), ROWS),
    "in-place": (Apply(set_first_row), ROWS),
    "scalar first": (Apply(lambda x: 1 - 2 / (x * x + 1) + 2**x), ROWS),
    "reductions": (Apply(lambda x: x.mean() + x.max() + x.amin(0) + x.std() + x.norm()), ROWS),
    "where": (Apply(lambda x: torch.where(x > 0, x, -x).clamp(max=0.5)), ROWS),
    "einsum": (Apply(lambda x: torch.einsum("ij,kj->ik", x, x)), ROWS),
    "indexing": (Apply(lambda x: x[:, torch.tensor([0, 2, 2])]), ROWS),
    "infinities": (Apply(lambda x: torch.softmax(x.masked_fill(x > 0.2, -torch.inf), -1)), ROWS),
    "layer norm": (nn.Sequential(nn.Linear(6, 6), nn.LayerNorm(6), nn.GELU("tanh")), ROWS),
    "gru": (Recurrent(), SEQUENCES),
    "transformer": (nn.TransformerEncoderLayer(6, 2, 12, dropout=0.0, batch_first=True), SEQUENCES),
    "conv1d": (nn.Sequential(nn.Conv1d(5, 4, 3), nn.SiLU(), nn.AvgPool1d(2)), SEQUENCES),
    "grouped conv": (
        nn.Conv2d(4, 8, 3, groups=4, dilation=2, padding="same", padding_mode="circular"),
        IMAGES,
    ),
    "transposed conv": (nn.Sequential(nn.ConvTranspose2d(4, 3, 2, 2), nn.MaxPool2d(3, 2, 1)), IMAGES),
    "adaptive pooling": (nn.Sequential(nn.Conv2d(4, 4, 1), nn.AdaptiveAvgPool2d(3)), IMAGES),
    "stateless batch norm": (
        nn.Sequential(nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4, track_running_stats=False)),
        IMAGES,
    ),
}


@pytest.mark.parametrize("name", MODULES)
def test_a_captured_step_and_prediction_are_those_of_torch(name):
    original, inputs = MODULES[name]
    module = copy.deepcopy(original).train()
    target = torch.randn_like(copy.deepcopy(module)(inputs).detach())
    program = capture_training_step(
        module, loss="mse", optimizer=Sgd(), example_inputs=[inputs], example_target=target
    )
    runtime = ReferenceRuntime(program)
    state, _ = runtime.step(initial_state(module, program), inputs=[inputs], target=target, lr=0.1, step=1)

    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    torch.autograd.backward(F.mse_loss(module(inputs), target))
    optimizer.step()
    for key, parameter in module.named_parameters():
        torch.testing.assert_close(state[key], parameter.detach(), rtol=0, atol=1e-5, msg=key)

    module.eval()
    forward = capture_forward(module, example_inputs=[inputs])
    predictions = ReferenceRuntime(forward).predict(initial_state(module, forward), inputs)
    torch.testing.assert_close(predictions, module(inputs).detach(), rtol=0, atol=1e-5)


def test_a_forward_program_of_batch_norm_uses_the_running_statistics():
    module = Cnn()
    module(torch.randn(8, 1, 8, 8))
    images = torch.randn(4, 1, 8, 8)
    program = capture_forward(module, example_inputs=[images])
    predictions = ReferenceRuntime(program).predict(initial_state(module, program), images)
    torch.testing.assert_close(predictions, module.eval()(images).detach(), rtol=0, atol=1e-5)
    assert [output.role for output in program.graph.outputs] == ["predictions"]


def test_capture_leaves_the_module_and_the_random_numbers_as_they_were():
    module = Cnn().train()
    module.second_norm.eval()
    before = {key: tensor.clone() for key, tensor in module.state_dict().items()}
    attributes = set(vars(module))
    random_state = torch.get_rng_state()
    capture_training_step(
        module,
        loss="cross_entropy",
        optimizer=AdamW(),
        example_inputs=[torch.zeros(2, 1, 8, 8)],
        example_target=torch.zeros(2, dtype=torch.int64),
    )
    assert torch.equal(torch.get_rng_state(), random_state)
    assert all(torch.equal(before[key], tensor) for key, tensor in module.state_dict().items())
    assert module.training
    assert not module.second_norm.training
    assert set(vars(module)) == attributes
    assert not module._forward_hooks
    assert all(parameter.grad is None for parameter in module.parameters())


def test_the_same_capture_gives_the_same_bytes():
    def capture() -> bytes:
        return program_dumps(capture_forward(Gpt(), example_inputs=[torch.zeros(2, 8, dtype=torch.int64)]))

    assert capture() == capture()


def test_tied_weights_are_one_parameter_of_the_program():
    program = capture_forward(Gpt(), example_inputs=[torch.zeros(2, 8, dtype=torch.int64)])
    assert "tokens.weight" in program.model_spec
    assert "head.weight" not in program.model_spec


def test_frozen_parameters_have_no_output_and_no_optimizer_slot():
    module = Mlp()
    module[0].weight.requires_grad_(False)
    program = capture_training_step(
        module,
        loss="cross_entropy",
        optimizer=Sgd(momentum=0.9),
        example_inputs=[torch.zeros(2, 64)],
        example_target=torch.zeros(2, dtype=torch.int64),
    )
    assert "0.weight" in program.model_spec
    assert "0.weight" not in {output.key for output in program.graph.outputs}
    assert "momentum_buffer/0.weight" not in program.state_spec


def test_buffers_outside_the_state_dict_become_constants():
    class Scaled(nn.Module):
        factor: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("factor", torch.tensor([2.0]), persistent=False)

        def forward(self, x):
            return x * self.factor

    module = Scaled()
    rows = torch.randn(3, 64)
    program = capture_forward(module, example_inputs=[rows])
    assert "factor" not in program.model_spec
    assert [tensor.tolist() for tensor in program.constants.values()] == [[2.0]]
    predictions = ReferenceRuntime(program).predict(initial_state(module, program), rows)
    torch.testing.assert_close(predictions, module(rows).detach())


def test_a_changing_buffer_outside_the_state_dict_is_refused():
    class Counting(nn.Module):
        calls: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(1), persistent=False)

        def forward(self, x):
            self.calls += 1
            return x * self.calls

    with pytest.raises(CaptureError, match="persistent=True") as caught:
        capture_forward(Counting(), example_inputs=[torch.zeros(2, 64)])
    assert caught.value.field == "calls"


def test_a_plain_tensor_attribute_becomes_a_constant():
    module = Apply(lambda x: x * OFFSET)
    program = capture_forward(module, example_inputs=[ROWS])
    predictions = ReferenceRuntime(program).predict(initial_state(module, program), ROWS)
    torch.testing.assert_close(predictions, module(ROWS).detach())
    assert len(program.constants) == 1


OFFSET = torch.arange(6, dtype=torch.float32)
