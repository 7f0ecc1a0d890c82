"""The reference runtime: checks what it is fed, changes nothing it was given, names the node that fails."""

import pytest
import torch

from metal_kernels.errors import BadFeed, RuntimeFailure
from metal_kernels.frontend.capture import capture_forward
from metal_kernels.runtimes.reference import Batch, ReferenceRuntime, initial_state
from tests.metal_kernels.models import Cnn, Gpt, Mlp

ROWS = torch.zeros(16, 64)
LABELS = torch.zeros(16, dtype=torch.int64)


def test_a_step_leaves_the_state_it_was_given_alone(mlp_program):
    state = initial_state(Mlp(), mlp_program)
    before = {key: tensor.clone() for key, tensor in state.items()}
    after, loss = ReferenceRuntime(mlp_program).step(state, inputs=[ROWS], target=LABELS, lr=0.1, step=1)
    assert all(torch.equal(before[key], tensor) for key, tensor in state.items())
    assert after.keys() == state.keys()
    assert loss.shape == ()
    assert not torch.equal(after["4.bias"], state["4.bias"])


def test_initial_state_is_the_modules_copied_and_zeros_for_the_optimizer(cnn_program):
    module = Cnn()
    state = initial_state(module, cnn_program)
    assert state.keys() == cnn_program.state_spec.keys()
    assert not any(tensor.any() for key, tensor in state.items() if key.startswith("momentum_buffer/"))
    state["head.bias"].zero_()
    assert module.head.bias.any()


def test_the_learning_rate_follows_the_step(mlp_program):
    asked = []

    def rate(step):
        asked.append(step)
        return 0.1

    run = ReferenceRuntime(mlp_program).run_steps(
        initial_state(Mlp(), mlp_program),
        [Batch((ROWS,), LABELS)] * 3,
        lr=rate,
        first_step=5,
    )
    assert asked == [5, 6, 7]
    assert run.losses[0] > run.losses[1] > run.losses[2]


def test_no_batches_leave_the_state_and_give_no_losses(mlp_program):
    state = initial_state(Mlp(), mlp_program)
    run = ReferenceRuntime(mlp_program).run_steps(state, [], lr=lambda step: 0.1)
    assert run.losses == []
    assert run.state == state


@pytest.mark.parametrize(
    ("inputs", "target", "field"),
    [
        ([], LABELS, "inputs"),
        ([ROWS[:4]], LABELS, "input0"),
        ([ROWS.double()], LABELS, "input0"),
        ([ROWS], LABELS.int(), "target"),
    ],
)
def test_a_batch_that_does_not_fit_is_refused(mlp_program, inputs, target, field):
    state = initial_state(Mlp(), mlp_program)
    with pytest.raises(BadFeed) as caught:
        ReferenceRuntime(mlp_program).step(state, inputs=inputs, target=target, lr=0.1, step=1)
    assert caught.value.field == field


def test_an_incomplete_state_is_refused(mlp_program):
    state = initial_state(Mlp(), mlp_program)
    del state["0.weight"]
    with pytest.raises(BadFeed, match=r"lacks '0\.weight'"):
        ReferenceRuntime(mlp_program).step(state, inputs=[ROWS], target=LABELS, lr=0.1, step=1)


def test_a_token_outside_the_vocabulary_fails_by_the_nodes_name():
    module = Gpt()
    program = capture_forward(module, example_inputs=[torch.zeros(2, 8, dtype=torch.int64)])
    with pytest.raises(RuntimeFailure, match="Node 'v0' failed: index out of range"):
        ReferenceRuntime(program).predict(initial_state(module, program), torch.full((2, 8), 99))


def test_another_modules_state_is_refused(mlp_program):
    with pytest.raises(BadFeed):
        initial_state(Cnn(), mlp_program)
    with pytest.raises(BadFeed):
        initial_state(Mlp(hidden=8), mlp_program)
