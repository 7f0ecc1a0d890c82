"""How fast this machine is: a small fixed program, timed, against what its device class should take."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median

import torch

from accounts.domain.device_classes import DeviceClass, clamp_speed
from metal_kernels.program.cost import program_cost
from metal_kernels.program.graph import Graph, Input, Node, Output, Program, Ref, Value
from metal_kernels.runtimes.reference import ReferenceRuntime

ROWS, FEATURES, HIDDEN, CLASSES = 32, 64, 128, 10  # as in the jobs that small devices get
RUNS = 400


@dataclass(frozen=True, slots=True)
class Speed:
    """Measured speed; `factor` is a multiple of the device class's reference."""

    run_us: float
    flops_per_second: float
    factor: float


def measure_speed(device_class: DeviceClass, *, throttle: float = 1.0) -> Speed:
    """Time the reference program; the median leaves out warming up and interruptions.

    `throttle` is the part of this machine's speed that the device will work at.
    """
    program = reference_program()
    runtime = ReferenceRuntime(program)
    generator = torch.Generator().manual_seed(0)
    state = {key: torch.randn(value.shape, generator=generator) for key, value in program.state_spec.items()}
    run = partial(runtime.predict, state, torch.randn(ROWS, FEATURES, generator=generator))
    run_us = median(_timed_us(run) for _ in range(RUNS)) / throttle
    cost = program_cost(program)
    expected_us = device_class.expected_gpu_us(
        flops=cost.flops, moved_bytes=cost.bytes, dispatches=cost.dispatches, speed_factor=1.0
    )
    return Speed(
        run_us=run_us,
        flops_per_second=cost.flops * 1e6 / run_us,
        factor=clamp_speed(expected_us / run_us),
    )


def reference_program() -> Program:
    """Two dense layers forward, and the first one's update: the mix of multiplying and moving that training is.

    Written out, so that it is the same on every device and costs no capture.
    """

    def value(name: str, *shape: int) -> Value:
        return Value(name, "float32", shape)

    def dense(out: Value, *, bias: str, rows: str, weight: str) -> Node:
        operands = {"self": Ref(bias), "mat1": Ref(rows), "mat2": Ref(weight)}
        return Node("aten.addmm.default", {**operands, "beta": 1, "alpha": 1}, [out])

    state = [
        value("w1", FEATURES, HIDDEN),
        value("b1", HIDDEN),
        value("w2", HIDDEN, CLASSES),
        value("b2", CLASSES),
    ]
    nodes = [
        dense(value("h", ROWS, HIDDEN), bias="b1", rows="x", weight="w1"),
        Node("aten.relu.default", {"self": Ref("h")}, [value("a", ROWS, HIDDEN)]),
        dense(value("y", ROWS, CLASSES), bias="b2", rows="a", weight="w2"),
        Node("aten.permute.default", {"self": Ref("x"), "dims": [1, 0]}, [value("xt", FEATURES, ROWS)]),
        Node("aten.mm.default", {"self": Ref("xt"), "mat2": Ref("a")}, [value("g", FEATURES, HIDDEN)]),
        Node("aten.mul.Scalar", {"self": Ref("g"), "other": 0.01}, [value("u", FEATURES, HIDDEN)]),
        Node(
            "aten.sub.Tensor",
            {"self": Ref("w1"), "other": Ref("u"), "alpha": 1},
            [value("w", FEATURES, HIDDEN)],
        ),
    ]
    inputs = [Input("parameter", tensor.name, tensor) for tensor in state]
    inputs.append(Input("input", "input0", value("x", ROWS, FEATURES)))
    return Program(Graph("forward", inputs, [], nodes, [Output("predictions", "predictions", "y")]))


def _timed_us(call: Callable[[], object]) -> float:
    started_ns = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - started_ns) / 1000
