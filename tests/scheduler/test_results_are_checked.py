"""A result that no honest device could have made is refused with a code, logged with the device, and not paid."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from blobs.services import blob_put
from metal_kernels.delta import delta_encode
from scheduler.checks import NORM_MAX, losses_refusal, norm_limit
from scheduler.domain import events as ev
from scheduler.engine import Engine, Mail
from scheduler.models import Inbox, Lease, Run
from scheduler.selectors import LeaseWork, lease_for_device
from scheduler.services import run_start
from scheduler.tasks import aggregate_round, check_result

from .fleet_of import Clock
from .training import digits_run, reported, train, trainee
from .world import ADA, connected

pytestmark = pytest.mark.django_db

LOSSES = [0.5] * 20


@pytest.fixture
def engine() -> Engine:
    engine = Engine(holder="one", clock=Clock())
    engine.start()
    run_start(spec=digits_run(rounds=1, shards=1))
    engine.turn([Mail(connected(ADA)), *engine.collect()])
    return engine


@pytest.fixture
def work(engine: Engine) -> LeaseWork:
    found = lease_for_device(Lease.objects.get().id)
    assert found is not None
    return found


def verdict(engine: Engine, result: ev.ResultReported) -> Any:
    engine.turn([Mail(result)])
    check_result(str(result.lease_id))
    return Inbox.objects.get().payload["refusal"]


def moved(amount: float) -> bytes:
    base = trainee().state
    return delta_encode(base, {name: tensor + amount for name, tensor in base.items()})


def without(name: str) -> bytes:
    base = {key: tensor for key, tensor in trainee().state.items() if key != name}
    return delta_encode(base, base)


def reshaped() -> bytes:
    base = {name: tensor[:1].clone() for name, tensor in trainee().state.items()}
    return delta_encode(base, base)


def test_an_honest_result_is_accepted(engine, work):
    assert verdict(engine, train(work)) is None
    engine.turn(engine.collect())
    assert Lease.objects.get().state == "accepted"
    norm = Lease.objects.get().delta_norm
    assert norm is not None
    assert norm > 0


@pytest.mark.parametrize(
    ("delta", "code"),
    [
        (lambda: b"junk", "delta_format"),
        (lambda: moved(0.1)[:-10], "delta_format"),
        (lambda: without("0.weight"), "delta_names"),
        (reshaped, "delta_shape"),
        (lambda: moved(1e6), "delta_norm"),
    ],
)
def test_a_delta_that_does_not_fit_is_refused(engine, work, caplog, delta: Callable[[], bytes], code):
    assert verdict(engine, reported(work, delta(), LOSSES)) == code
    assert str(ADA) in caplog.text
    assert code in caplog.text
    engine.turn(engine.collect())
    lease = Lease.objects.get()
    assert (lease.state, lease.reason, lease.charge_microusd) == ("refused", code, 0)
    assert Run.objects.get().spent_microusd == 0


def test_a_scale_that_is_not_finite_is_refused(engine, work):
    data = bytearray(moved(0.1))
    data[-4:] = torch.tensor([float("nan")]).numpy().tobytes()
    assert verdict(engine, reported(work, bytes(data), LOSSES)) == "delta_not_finite"


def test_a_result_without_its_upload_is_refused(engine, work):
    result = reported(work, moved(0.1), LOSSES)
    assert verdict(engine, replace(result, delta_sha256="0" * 64)) == "delta_missing"


def test_another_ones_upload_is_no_result(engine, work):
    theirs = blob_put(data=moved(0.1), holder="lease:someone-else")
    result = replace(reported(work, moved(0.2), LOSSES), delta_sha256=theirs.sha256)
    assert verdict(engine, result) == "delta_missing"


def test_a_result_of_another_size_than_told_is_refused(engine, work):
    result = reported(work, moved(0.1), LOSSES)
    assert verdict(engine, replace(result, delta_bytes=result.delta_bytes + 1)) == "delta_size"


@pytest.mark.parametrize(
    ("steps", "losses", "code"),
    [
        (20, LOSSES, None),
        (19, LOSSES[:19], "steps_wrong"),
        (20, LOSSES[:19], "losses_bad"),
        (20, [*LOSSES[:19], float("nan")], "losses_bad"),
        (20, [*LOSSES[:19], float("inf")], "losses_bad"),
    ],
)
def test_every_step_was_made_and_has_a_finite_loss(steps, losses, code):
    assert losses_refusal(steps=steps, losses=losses, local_steps=20) == code


def test_a_delta_far_beyond_those_accepted_before_is_refused():
    assert norm_limit([]) == norm_limit([1.0, 1.0]) == NORM_MAX
    assert norm_limit([1.0, 2.0, 30.0]) == 20.0
    assert norm_limit([0.0, 0.0, 0.0]) == NORM_MAX


def test_a_lease_that_is_no_longer_reported_is_not_checked(engine, work):
    check_result(str(work.lease_id))
    assert not Inbox.objects.exists()


def aggregated(engine: Engine, work: LeaseWork, delta: bytes) -> Inbox:
    """Accept `delta` without its check, and make the outer step."""
    result = reported(work, delta, LOSSES)
    engine.turn([Mail(result), Mail(ev.ResultChecked(result.lease_id, None, 1.0))])
    run = Run.objects.get()
    aggregate_round(str(run.id), 0)
    return Inbox.objects.get()


def test_a_round_whose_numbers_are_not_finite_fails_its_run(engine, work):
    told = aggregated(engine, work, moved(3e38))
    assert (told.kind, told.payload["code"]) == ("RoundFailed", "diverged")
    engine.turn(engine.collect())
    run = Run.objects.get()
    assert (run.state, run.ended_because) == ("failed", "diverged")
    assert "Lower the learning rate" in run.ended_message


def test_a_round_that_cannot_be_read_fails_its_run(engine, work):
    told = aggregated(engine, work, b"junk")
    assert (told.kind, told.payload["code"]) == ("RoundFailed", "round_unreadable")


def test_an_outer_step_made_twice_gives_the_same_blobs(engine, work):
    first = aggregated(engine, work, moved(0.01)).payload
    Inbox.objects.all().delete()
    aggregate_round(first["run_id"], 0)
    assert Inbox.objects.get().payload == first
