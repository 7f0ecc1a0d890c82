"""What a group computes, whatever its tensors are called: groups of one pattern share a kernel.

The layers of a network repeat the same work. To see that before kernels are made, rather than by their text, halves
the time that a deep network takes.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from metal_kernels.ir.expr import Expr, Tensor, nodes, read, rebuild
from metal_kernels.ir.loops import Contract, Definition
from metal_kernels.passes.group import Group, Layout, Place

Pattern: TypeAlias = tuple[
    Layout | None, tuple[tuple[Definition, Place], ...], tuple[Tensor, ...], tuple[tuple[Tensor, Tensor], ...]
]


def pattern_of(
    group: Group, stored: list[Tensor], in_place: Mapping[Tensor, Tensor]
) -> tuple[Pattern, list[Tensor]]:
    """The group with its tensors numbered, and the tensors in the order of their numbers."""
    numbering = _Numbering()
    members = tuple((numbering.definition(member), group.places[member.tensor]) for member in group.members)
    kept = tuple(numbering.tensor(tensor) for tensor in stored)
    replaced = tuple(
        (numbering.tensor(tensor), numbering.tensor(in_place[tensor]))
        for tensor in numbering.tensors.copy()
        if tensor in in_place
    )
    return (group.layout, members, kept, replaced), list(numbering.tensors)


class _Numbering:
    def __init__(self) -> None:
        self.tensors: dict[Tensor, Tensor] = {}

    def tensor(self, tensor: Tensor) -> Tensor:
        return self.tensors.setdefault(tensor, replace(tensor, name=str(len(self.tensors))))

    def definition(self, member: Definition) -> Definition:
        if isinstance(member, Contract):
            left, right = self._expr(member.left), self._expr(member.right)
            return replace(member, tensor=self.tensor(member.tensor), left=left, right=right)
        return replace(member, tensor=self.tensor(member.tensor), body=self._expr(member.body))

    def _expr(self, root: Expr) -> Expr:
        done: dict[Expr, Expr] = {}
        for node in nodes(root):
            args = tuple([done[arg] for arg in node.args])
            done[node] = read(self.tensor(node.value), *args) if node.op == "read" else rebuild(node, args)
        return done[root]
