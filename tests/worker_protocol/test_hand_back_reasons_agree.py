"""The reasons for which a device may hand a lease back are the same on the wire and in the scheduler."""

from typing import get_args, get_type_hints

from scheduler.domain.events import BLAMED, HandbackReason
from worker_protocol.wire.messages import Handback


def test_the_wire_and_the_scheduler_know_the_same_reasons():
    assert set(get_args(get_type_hints(Handback)["reason"])) == set(get_args(HandbackReason))


def test_only_reasons_that_exist_are_held_against_a_device():
    assert set(get_args(HandbackReason)) > BLAMED
