"""Devices that answer the engine's instructions at once, so that a run goes on by itself in a test."""

import random
from collections.abc import Iterable
from datetime import datetime, timedelta
from uuid import UUID

from scheduler.domain import events as ev
from scheduler.domain import instructions as ins
from scheduler.engine import Engine, Mail
from scheduler.models import Lease
from scheduler.selectors import lease_for_device
from scheduler.tasks import aggregate_round, check_result

from .training import train
from .world import START, connected


class Clock:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now: datetime = START

    def __call__(self) -> datetime:
        return self.now

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class Fleet:
    """Carries instructions out as sockets, devices and workers would. A real result is trained for every lease."""

    def __init__(self, engine: Engine, clock: Clock, devices: Iterable[UUID]) -> None:
        self.engine = engine
        self.clock = clock
        self.devices = tuple(devices)
        self.results: dict[UUID, ev.ResultReported] = {}  # that no acknowledgement has come for

    def connect(self) -> None:
        """Every device announces itself, with the leases whose results it still has."""
        self.turn(
            *(
                connected(device, resumed=tuple(i for i, r in self.results.items() if r.device_id == device))
                for device in self.devices
            )
        )

    def turn(self, *events: ev.Event, seconds: float = 0.5) -> None:
        self.clock.pass_time(seconds)
        mail = [Mail(event) for event in events]
        self.carry_out(self.engine.turn([*mail, *self.engine.collect()]))

    def carry_out(self, instructions: Iterable[ins.Instruction]) -> None:
        for instruction in instructions:
            self.obey(instruction)

    def obey(self, instruction: ins.Instruction) -> None:
        match instruction:
            case ins.SendLease(lease_id=lease_id):
                work = lease_for_device(lease_id)
                if work is not None and work.live and lease_id not in self.results:
                    self.results[lease_id] = train(work)
            case ins.SendAck(lease_id=lease_id) | ins.SendRevoke(lease_id=lease_id):
                self.results.pop(lease_id, None)
            case ins.CheckResult(lease_id=lease_id):
                check_result(str(lease_id))
            case ins.AggregateRound(run_id=run_id, round_index=index):
                aggregate_round(str(run_id), index)
            case _:
                pass

    def report_all(self) -> None:
        """Devices repeat their results until they are acknowledged."""
        self.turn(*self.results.values())


class CrashingFleet(Fleet):
    """Loses an instruction now and then and all that follow, as when the server is killed before it sends them."""

    def __init__(self, engine: Engine, clock: Clock, devices: Iterable[UUID], chance: random.Random) -> None:
        super().__init__(engine, clock, devices)
        self.chance = chance
        self.crashes = 0

    def restart(self) -> None:
        """Start the engine until it gets through what was left open, and let devices announce themselves."""
        while True:
            try:
                self.carry_out(self.engine.start() or [])
                self.connect()
            except ServerKilled:
                continue
            return

    def carry_out(self, instructions: Iterable[ins.Instruction]) -> None:
        for instruction in instructions:
            if self.chance.random() < 0.15:
                self.crashes += 1
                raise ServerKilled
            self.obey(instruction)


class ServerKilled(Exception):
    pass


def accepted_by_shard() -> dict[UUID, int]:
    counts: dict[UUID, int] = {}
    for lease in Lease.objects.filter(state=Lease.State.ACCEPTED):
        counts[lease.shard_id] = counts.get(lease.shard_id, 0) + 1
    return counts
