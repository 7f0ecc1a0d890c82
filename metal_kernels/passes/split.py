"""Cut reductions that give few results into two, so that many lanes can work on them.

A sum over everything becomes sums of rows and a sum of those: the first half can then share a kernel with the values
it sums. A product with a small result and a long sum (a weight gradient) becomes a batch of shorter sums.
"""

from dataclasses import dataclass, replace
from math import prod

from metal_kernels.ir.expr import Tensor, index_var, read, substitute
from metal_kernels.ir.loops import (
    CONTRACT_AXES,
    Contract,
    Definition,
    LoopProgram,
    Reduce,
    axes_of,
    binding,
    contract_axes,
)


@dataclass(frozen=True)
class SplitPolicy:
    """A device wants `lanes` lanes of work in a product, each with `outputs_per_lane` results; a piece of a sum has
    `shortest_sum` terms at least. No lanes wanted means that products are left whole."""

    lanes: int
    outputs_per_lane: int = 16
    shortest_sum: int = 128


def split(program: LoopProgram, policy: SplitPolicy) -> LoopProgram:
    definitions: list[Definition] = []
    for definition in program.definitions:
        match definition:
            case Reduce():
                definitions += _split_reduce(definition)
            case Contract():
                definitions += _split_contract(definition, policy)
            case _:
                definitions.append(definition)
    return replace(program, definitions=definitions)


def _split_reduce(whole: Reduce) -> list[Definition]:
    """Of a reduction of every axis, the last axis first."""
    outer, last = whole.extents[:-1], len(whole.extents) - 1
    if len(whole.reduced) != len(whole.extents) or prod(outer) == 1 or whole.extents[last] == 1:
        return [whole]
    rows = Tensor(f"{whole.tensor.name}.rows", whole.tensor.dtype, outer)
    axes = axes_of(outer)
    return [
        replace(whole, tensor=rows, reduced=(last,)),
        replace(whole, domain=axes, extents=outer, reduced=tuple(range(last)), body=read(rows, *axes)),
    ]


def _split_contract(whole: Contract, policy: SplitPolicy) -> list[Definition]:
    b, m, n, k = whole.extents
    pieces = _pieces(b * m * n, k, policy)
    if pieces == 1:
        return [whole]
    part = Tensor(f"{whole.tensor.name}.parts", "f32", (b, pieces, m, n))
    length = k // pieces
    extents = (b * pieces, m, n, length)
    batch, _, _, term = contract_axes(extents)
    where_it_was = binding(
        contract_axes(whole.extents), (batch // pieces, *contract_axes(whole.extents)[1:3], term)
    )
    old_k = index_var(CONTRACT_AXES[3], k)
    where_it_was[old_k] = (batch % pieces) * length + term
    left, right = (substitute(side, where_it_was) for side in (whole.left, whole.right))
    domain = axes_of(part.shape)
    return [
        replace(
            whole, tensor=part, extents=extents, left=left, right=right, terms=_part_of(whole.terms, length)
        ),
        Reduce(whole.tensor, domain, part.shape, (1,), "sum", read(part, *domain)),
    ]


def _part_of(shape: tuple[int, ...], length: int) -> tuple[int, ...]:
    """The shape of a piece of `length` terms, as far as the pieces keep to the whole's innermost axes."""
    for position in range(1, len(shape)):
        inner = prod(shape[position:])
        if length % inner == 0 and shape[position - 1] % (length // inner) == 0:
            return (length // inner, *shape[position:])
    return ()


def _pieces(outputs: int, terms: int, policy: SplitPolicy) -> int:
    """The most pieces of equal length that are still long enough, up to those that keep the device busy."""
    lanes = max(outputs // policy.outputs_per_lane, 1)
    wanted = min(policy.lanes // lanes, terms // policy.shortest_sum)
    return max((count for count in range(1, max(wanted, 1) + 1) if terms % count == 0), default=1)
