"""How long a kernel takes, judged from its text alone, before anything has been measured on the device.

Operations and loads of one lane, loops multiplied out, over what a device of the class does in a microsecond. The
figures are for slow devices of their class: the first submissions of a run rest on them, and a phone's watchdog ends
long ones.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, prod
from typing import Final

from metal_kernels.ir.expr import MEMORY, Expr, nodes
from metal_kernels.ir.kernel import Assign, Declare, For, If, Kernel, Let, SharedStore, Statement, Store
from metal_kernels.ir.scalars import SCALAR_OPS
from metal_kernels.passes.tiles import DeviceClass


@dataclass(frozen=True)
class Speed:
    """What all lanes of a device together do in a microsecond."""

    operations_per_us: float
    accesses_per_us: float
    launch_us: float


SPEEDS: Final[dict[DeviceClass, Speed]] = {
    "cpu": Speed(operations_per_us=4_000, accesses_per_us=400, launch_us=50),
    "phone": Speed(operations_per_us=50_000, accesses_per_us=5_000, launch_us=20),
    "desktop": Speed(operations_per_us=500_000, accesses_per_us=50_000, launch_us=10),
}


@dataclass(frozen=True)
class Work:
    """What one lane does."""

    operations: float = 0
    accesses: float = 0

    def __add__(self, other: "Work") -> "Work":
        return Work(self.operations + other.operations, self.accesses + other.accesses)

    def times(self, count: float) -> "Work":
        return Work(self.operations * count, self.accesses * count)


def estimated_us(kernel: Kernel, device: DeviceClass) -> int:
    """Microseconds for one dispatch, at least 1."""
    work, speed = _body_work(kernel.body).times(kernel.lanes * prod(kernel.groups)), SPEEDS[device]
    return ceil(
        speed.launch_us + work.operations / speed.operations_per_us + work.accesses / speed.accesses_per_us
    )


def _body_work(body: Iterable[Statement]) -> Work:
    total = Work()
    for statement in body:
        match statement:
            case Let() | Declare() | Assign():
                total += _expr_work(statement.value)
            case Store() | SharedStore():
                total += _expr_work(statement.index, statement.value) + Work(accesses=1)
            case For():
                turns = ceil(max(statement.stop.high - statement.start.low, 0) / statement.step)
                total += _body_work(statement.body).times(turns)
            case If():
                total += _expr_work(statement.condition) + _body_work(statement.body)
    return total


def _expr_work(*roots: Expr) -> Work:
    operations, accesses = 0, 0
    for node in nodes(*roots):
        if node.op in SCALAR_OPS:
            operations += SCALAR_OPS[node.op].cost
        elif node.op in MEMORY:
            accesses += 4 if node.op == "load4" else 1
    return Work(operations, accesses)
