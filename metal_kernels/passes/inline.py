"""Write definitions into their users: views always, pointwise chains where nothing is computed twice for it.

What remains are the values worth a place in memory, or worth a place in a kernel with others.
"""

from collections import defaultdict
from dataclasses import dataclass, replace
from math import prod
from typing import Final

from metal_kernels.ir.expr import Expr, Tensor, nodes, read, reads, rebuild, substitute
from metal_kernels.ir.loops import (
    Contract,
    Definition,
    LoopProgram,
    Map,
    Reduce,
    binding,
    extents_of,
    sources,
)
from metal_kernels.ir.scalars import SCALAR_OPS

CHEAP_WORK: Final = 2
"""Arithmetic that is rather done again than stored and loaded."""

REPEATED_WORK: Final = 4
"""How much arithmetic may be added to each element of the producer by computing it more than once."""


FEW_LOOKUPS: Final = 4
"""More reads than these to find a place, as in a search, are not done again for every user's element."""

POSITION_WORK: Final = 64
"""What follows from an element's place alone is computed where it is needed, up to this much arithmetic. A random
number takes more."""


MOST_SOURCES: Final = 6
"""A kernel binds few buffers: a definition that would read more tensors leaves some of its operands in memory."""


def inline(program: LoopProgram) -> LoopProgram:
    """Definitions without those that their users took in, without repeats and without what nobody uses."""
    users = _users(program)
    inlined: dict[Tensor, Map] = {}
    aliases: dict[Tensor, Tensor] = {}
    known: dict[object, Tensor] = {}
    kept: list[Definition] = []
    for original in program.definitions:
        definition = _expanded(original, inlined, aliases)
        while len(sources(definition)) > MOST_SOURCES and (widest := _widest(original, inlined)):
            kept.append(inlined.pop(widest))
            definition = _expanded(original, inlined, aliases)
        is_output = definition.tensor.name in program.outputs
        key = replace(definition, tensor=_NAMELESS), definition.tensor.shape
        if key in known and not is_output:
            aliases[definition.tensor] = known[key]
        elif (
            isinstance(definition, Map)
            and not is_output
            and _is_taken_in(definition, users[definition.tensor])
        ):
            inlined[definition.tensor] = definition
        else:
            known.setdefault(key, definition.tensor)
            kept.append(definition)
    return replace(program, definitions=_alive(kept, program))


_NAMELESS: Final = Tensor("", "f32", ())


def _widest(definition: Definition, inlined: dict[Tensor, Map]) -> Tensor | None:
    """Of the operands that were taken in, the one that reads the most tensors, if it reads several."""
    taken = [tensor for tensor in sources(definition) if tensor in inlined]
    widest = max(taken, key=lambda tensor: (len(sources(inlined[tensor])), tensor.name), default=None)
    return widest if widest is not None and len(sources(inlined[widest])) > 1 else None


def _users(program: LoopProgram) -> dict[Tensor, list[Definition]]:
    users: dict[Tensor, list[Definition]] = defaultdict(list)
    for definition in program.definitions:
        for tensor in sources(definition):
            users[tensor].append(definition)
    return users


def _expanded(
    definition: Definition, inlined: dict[Tensor, Map], aliases: dict[Tensor, Tensor]
) -> Definition:
    def expand(root: Expr) -> Expr:
        done: dict[Expr, Expr] = {}
        for node in nodes(root):
            new = rebuild(node, tuple(done[arg] for arg in node.args))
            if new.op == "read":
                tensor = aliases.get(new.value, new.value)
                taken = inlined.get(tensor)
                new = (
                    substitute(taken.body, binding(taken.axes, new.args))
                    if taken
                    else read(tensor, *new.args)
                )
            done[node] = new
        return done[root]

    if isinstance(definition, Contract):
        return replace(definition, left=expand(definition.left), right=expand(definition.right))
    return replace(definition, body=expand(definition.body))


_DATA: Final = frozenset({"f32", "u32"})


@dataclass(frozen=True)
class _Work:
    """What one element costs: arithmetic on data (not on indices), and elements read.

    `lookups` are the reads whose results only say where to read.
    """

    arithmetic: int
    reads: int
    lookups: int

    @classmethod
    def of(cls, body: Expr) -> "_Work":
        arithmetic = 0
        all_reads = set(reads(body))
        lookups = {inner for node in all_reads for inner in reads(*node.args)}
        for node in nodes(body):
            if node.op in SCALAR_OPS and node.op != "where" and _DATA & {arg.dtype for arg in node.args}:
                arithmetic += SCALAR_OPS[node.op].cost
        return cls(arithmetic, len(all_reads - lookups), len(lookups))


def _is_taken_in(definition: Map, users: list[Definition]) -> bool:
    work = _Work.of(definition.body)
    if not work.reads and work.arithmetic <= POSITION_WORK:
        return True  # A constant, a position, or a number of the step.
    if any(isinstance(user, Contract) for user in users):
        # An operand is read once for each tile of the result.
        return (
            work.arithmetic <= 1
            and work.reads <= 1
            and not work.lookups
            and not _is_activation(definition.body)
        )
    if work.arithmetic <= CHEAP_WORK and work.reads <= 1 and work.lookups <= FEW_LOOKUPS:
        return True
    if len(users) != 1:
        return False
    repeats = _domain_size(users[0]) / max(prod(extents_of(definition)), 1)
    if repeats <= 1 or work.lookups > FEW_LOOKUPS:
        return repeats <= 1
    return work.arithmetic * (repeats - 1) <= REPEATED_WORK


def _is_activation(body: Expr) -> bool:
    """A maximum: better done once, in the kernel that makes the value, than by every tile that reads it."""
    return body.op in ("max", "where") and body.dtype == "f32" and any(arg.op == "read" for arg in body.args)


def _domain_size(definition: Definition) -> int:
    if isinstance(definition, Reduce):
        return prod(definition.extents)
    return prod(extents_of(definition))


def _alive(definitions: list[Definition], program: LoopProgram) -> list[Definition]:
    used: set[str] = set(program.outputs)
    alive: list[Definition] = []
    for definition in reversed(definitions):
        if definition.tensor.name in used:
            alive.append(definition)
            used |= {tensor.name for tensor in sources(definition)}
    return alive[::-1]
