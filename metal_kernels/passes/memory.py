"""Plan memory: values whose lives do not meet share a buffer.

A scratch value lives from the dispatch that makes it to the last that reads it. What a dispatch makes never shares
with what it reads. State, constants, data and results have buffers of their own.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from metal_kernels.ir.expr import Tensor
from metal_kernels.ir.loops import LoopProgram
from metal_kernels.passes.schedule import Schedule


@dataclass(frozen=True)
class MemoryPlan:
    """`kept` have buffers of their own; `scratch` gives the others an index into `scratch_elements`."""

    kept: list[Tensor]
    scratch: Mapping[Tensor, int]
    scratch_elements: list[int]


def plan_memory(program: LoopProgram, plan: Schedule) -> MemoryPlan:
    permanent = {*program.inputs.values()} | {
        tensor for tensor in program.outputs.values() if tensor not in plan.in_place
    }
    last_use: dict[Tensor, int] = {}
    for position, dispatch in enumerate(plan.dispatches):
        for tensor in dispatch.tensors:
            last_use[tensor] = position
    kept = [tensor for tensor in last_use if tensor in permanent]
    slots = _Slots()
    for position, dispatch in enumerate(plan.dispatches):
        for tensor in dispatch.tensors:
            if tensor not in permanent and tensor not in slots.slot_of:
                slots.take(tensor)
        for tensor in dispatch.tensors:
            if tensor in slots.slot_of and last_use[tensor] == position:
                slots.release(tensor)
    return MemoryPlan(kept, slots.slot_of, slots.elements)


class _Slots:
    def __init__(self) -> None:
        self.slot_of: dict[Tensor, int] = {}
        self.elements: list[int] = []
        self._free: list[int] = []

    def take(self, tensor: Tensor) -> None:
        """The smallest free slot that is large enough; else the largest free one, enlarged; else a new one."""
        wanted = max(tensor.elements, 1)
        fitting = [slot for slot in self._free if self.elements[slot] >= wanted]
        if fitting:
            slot = min(fitting, key=lambda each: self.elements[each])
        elif self._free:
            slot = max(self._free, key=lambda each: self.elements[each])
            self.elements[slot] = wanted
        else:
            slot = len(self.elements)
            self.elements.append(wanted)
        if slot in self._free:
            self._free.remove(slot)
        self.slot_of[tensor] = slot

    def release(self, tensor: Tensor) -> None:
        self._free.append(self.slot_of[tensor])
