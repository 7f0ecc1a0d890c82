"""Choose which definitions share a kernel.

A group is one of two kinds. A *contraction* has one product and the maps that follow it element by element. A *rows*
group cuts one domain into rows and columns: its members give a value for each element (`full`) or for each row
(`row`), reductions run along the columns. Softmax, layer norm and their gradients are one rows group each.

A definition joins the group of a value that it reads if it needs that value at its own place only, so that no lane
waits for another workgroup.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod
from typing import Final, Literal, TypeAlias

from metal_kernels.ir.expr import Expr, Tensor, flatten, index_var, reads, substitute, unflatten
from metal_kernels.ir.loops import (
    Contract,
    Definition,
    LoopProgram,
    Map,
    Reduce,
    binding,
    bodies,
    extents_of,
    flat_read,
    sources,
)
from metal_kernels.ir.spec import MAX_STORAGE_BUFFERS

Place: TypeAlias = Literal["full", "row"]
Layout: TypeAlias = tuple[tuple[int, bool], ...]
"""The axes of a domain, outermost first: extent, and whether reductions run along it. Neighbours of a kind are
joined."""

FEWEST_ROWS: Final = 16
"""With fewer rows, whole workgroups idle: element-wise work of such a domain gets a kernel of its own ..."""

SMALL_DOMAIN: Final = 4096
"""... unless the domain is so small that the dispatch costs more."""


@dataclass
class Group:
    """Members in order of dependence. `layout` is None for a contraction.

    `after` holds the positions of all groups that must run before, directly or not.
    """

    members: list[Definition]
    layout: Layout | None
    places: dict[Tensor, Place]
    after: set[int] = field(default_factory=set)

    @property
    def contract(self) -> Contract | None:
        first = self.members[0]
        return first if isinstance(first, Contract) else None

    @property
    def elements(self) -> int:
        if self.layout is None:
            return prod(extents_of(self.members[0]))
        return prod(extent for extent, _ in self.layout)

    @property
    def rows(self) -> int:
        return prod(extent for extent, reduced in self.layout or () if not reduced)

    @property
    def reduces(self) -> bool:
        return any(isinstance(member, Reduce) for member in self.members)

    def external(self) -> set[Tensor]:
        """What it reads and does not make itself."""
        return {tensor for member in self.members for tensor in sources(member)} - self.places.keys()

    def row_of(self, flat: Expr) -> Expr:
        """The row of an element, by its flat index in the domain."""
        layout = self.layout or ()
        at = unflatten(flat, tuple(extent for extent, _ in layout))
        kept = [(index, extent) for index, (extent, reduced) in zip(at, layout, strict=True) if not reduced]
        return flatten([index for index, _ in kept], tuple(extent for _, extent in kept))


def group(program: LoopProgram, *, state_in_place: bool = True) -> list[Group]:
    """Every definition in exactly one group. A group may have to wait for later ones; `after` tells which.

    Kernels bind few buffers. State that is replaced in place needs one, not two; where that turns out to be
    impossible, `state_in_place` must not be counted on.
    """
    return _Grouping(program, state_in_place=state_in_place).run()


def layout_of(extents: Iterable[int], reduced: Iterable[int]) -> Layout:
    positions = set(reduced)
    merged: list[tuple[int, bool]] = []
    for position, extent in enumerate(extents):
        kind = position in positions
        if extent == 1:
            continue
        if merged and merged[-1][1] == kind:
            merged[-1] = (merged[-1][0] * extent, kind)
        else:
            merged.append((extent, kind))
    return tuple(merged)


def domain_of(definition: Map | Reduce) -> tuple[tuple[Expr, ...], tuple[int, ...]]:
    """The axes over which its body is evaluated, and their extents."""
    if isinstance(definition, Reduce):
        return definition.domain, definition.extents
    return definition.axes, extents_of(definition)


class _Grouping:
    def __init__(self, program: LoopProgram, *, state_in_place: bool) -> None:
        self._program = program
        self._groups: list[Group] = []
        self._group_of: dict[Tensor, int] = {}
        self._replaced = {new: old for old, new in program.updates.items() if state_in_place}
        self._users: dict[Tensor, list[Definition]] = {}
        for definition in program.definitions:
            for tensor in sources(definition):
                self._users.setdefault(tensor, []).append(definition)

    def run(self) -> list[Group]:
        for definition in self._program.definitions:
            self._place(definition)
        return self._groups

    def _place(self, definition: Definition) -> None:
        needed = {self._group_of[tensor] for tensor in sources(definition) if tensor in self._group_of}
        if not isinstance(definition, Contract):
            for candidate in self._candidates(definition, needed):
                if self._join(candidate, definition, needed - {candidate}):
                    return
        self._found(definition, needed)

    def _candidates(self, definition: Map | Reduce, needed: set[int]) -> list[int]:
        """Groups it reads from, the latest first; then groups that reduce the same tensor in the same way."""
        candidates = sorted(needed, reverse=True)
        if isinstance(definition, Reduce):
            layout = layout_of(definition.extents, definition.reduced)
            shared = sources(definition)
            candidates += [
                index
                for index, other in enumerate(self._groups)
                if index not in needed
                and other.reduces
                and other.layout == layout
                and other.external() & shared
            ]
        return candidates

    def _found(self, definition: Definition, needed: set[int]) -> None:
        layout: Layout | None = None
        place: Place = "full"
        if isinstance(definition, Reduce):
            layout, place = layout_of(definition.extents, definition.reduced), "row"
        elif isinstance(definition, Map):
            layout = layout_of(extents_of(definition), ())
        self._group_of[definition.tensor] = len(self._groups)
        after = set().union(needed, *(self._groups[index].after for index in needed))
        self._groups.append(Group([definition], layout, {definition.tensor: place}, after))

    def _join(self, index: int, definition: Map | Reduce, others: set[int]) -> bool:
        """Add the definition to the group if it fits there; what else it needs must not wait for the group."""
        candidate = self._groups[index]
        if any(other == index or index in self._groups[other].after for other in others):
            return False
        layout, place = _fit(candidate, definition)
        if place is None or not self._is_worthwhile(candidate, layout, definition, place):
            return False
        joined = Group(
            [*candidate.members, definition], layout, {**candidate.places, definition.tensor: place}
        )
        if self._binding_count(joined) > MAX_STORAGE_BUFFERS:
            return False
        joined.after = candidate.after.union(others, *(self._groups[other].after for other in others))
        self._groups[index] = joined
        self._group_of[definition.tensor] = index
        for later in self._groups:
            if index in later.after:
                later.after |= joined.after
        return True

    def _is_worthwhile(
        self, candidate: Group, layout: Layout | None, definition: Map | Reduce, place: Place
    ) -> bool:
        if layout is None or candidate.elements <= SMALL_DOMAIN:
            return True
        rows = prod(extent for extent, reduced in layout if not reduced)
        has_full_work = place == "full" or "full" in candidate.places.values()
        reduces = candidate.reduces or isinstance(definition, Reduce)
        return not (reduces and has_full_work) or rows >= FEWEST_ROWS

    def _binding_count(self, joined: Group) -> int:
        """Storage buffers the kernel binds; state and what replaces it share one."""
        stored = [member.tensor for member in joined.members if self._is_stored(member.tensor, joined)]
        inputs = {tensor.name for tensor in joined.external()}
        in_place = {self._replaced.get(tensor.name) for tensor in stored} & inputs
        return len(inputs) + len(stored) - len(in_place)

    def _is_stored(self, tensor: Tensor, joined: Group) -> bool:
        if tensor.name in self._program.outputs:
            return True
        return any(user.tensor not in joined.places for user in self._users.get(tensor, []))


def stored_members(program: LoopProgram, groups: list[Group]) -> list[list[Tensor]]:
    """By group, the members that live in memory: outputs, and what other groups read."""
    read_outside = {tensor for one in groups for tensor in one.external()}
    return [
        [
            member.tensor
            for member in one.members
            if member.tensor.name in program.outputs or member.tensor in read_outside
        ]
        for one in groups
    ]


def _fit(candidate: Group, definition: Map | Reduce) -> tuple[Layout | None, Place | None]:
    """The layout that the group would have with the definition in it, and the definition's place, if there is one."""
    _, extents = domain_of(definition)
    layout = candidate.layout
    if isinstance(definition, Reduce):
        wanted = layout_of(definition.extents, definition.reduced)
        if candidate.contract or (candidate.reduces and layout != wanted):
            return layout, None
        if not candidate.reduces and prod(extents) != candidate.elements:
            return layout, None
        fits = _reads_own_place(Group(candidate.members, wanted, candidate.places), definition, "full")
        return wanted, "row" if fits else None
    size = prod(extents)
    if size == candidate.elements and _reads_own_place(candidate, definition, "full"):
        return layout, "full"
    if candidate.reduces and size == candidate.rows and _reads_own_place(candidate, definition, "row"):
        return layout, "row"
    return layout, None


def _reads_own_place(candidate: Group, definition: Map | Reduce, place: Place) -> bool:
    """Whether it reads the group's members only at the element, or row, at which it is evaluated itself."""
    domain, extents = domain_of(definition)
    flat = index_var("flat", prod(extents))
    body = substitute(bodies(definition)[0], binding(domain, unflatten(flat, extents)))
    for node in reads(body):
        member_place = candidate.places.get(node.value)
        if member_place is None:
            continue
        if member_place == "full" and (place == "row" or flat_read(node) is not flat):
            return False
        own_row = flat if place == "row" else candidate.row_of(flat)
        if member_place == "row" and flat_read(node) is not own_row:
            return False
    return True
