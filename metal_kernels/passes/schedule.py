"""From groups to kernels and an order of dispatches. Equal kernels are written once."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from metal_kernels.ir.expr import Expr, Tensor, index_var, nodes, reads, substitute, unflatten
from metal_kernels.ir.kernel import Kernel
from metal_kernels.ir.loops import Contract, LoopProgram, binding, bodies, flat_read
from metal_kernels.ir.printer import kernel_text
from metal_kernels.ir.scalars import Scalar
from metal_kernels.ir.spec import MAX_STORAGE_BUFFERS, kernel_check
from metal_kernels.passes.bind import Binder, KernelDraft
from metal_kernels.passes.contraction import contraction_kernel
from metal_kernels.passes.group import Group, domain_of, group, stored_members
from metal_kernels.passes.matrix_product import matrix_kernel
from metal_kernels.passes.pattern import Pattern, pattern_of
from metal_kernels.passes.rows import rows_kernel
from metal_kernels.passes.tiles import DeviceClass, ProductShape, Tile, tile_for
from metal_kernels.passes.vectorise import expressions, vectorise


@dataclass(frozen=True)
class Dispatch:
    """One kernel on its tensors, in the order of the kernel's buffers."""

    kernel: Kernel
    tensors: tuple[Tensor, ...]


@dataclass(frozen=True)
class Schedule:
    """Dispatches in order. `in_place` maps a new state tensor to the old one whose memory it takes.

    `with_matrices` are kernels that take another's place, by its name, on devices whose simdgroups multiply matrices.
    """

    dispatches: list[Dispatch]
    in_place: Mapping[Tensor, Tensor]
    with_matrices: Mapping[str, Kernel]


def schedule(
    program: LoopProgram, groups: list[Group], device: DeviceClass, tile: Tile | None = None
) -> Schedule:
    """`tile`, if given, is used for every product in place of the table's."""
    if any(count > MAX_STORAGE_BUFFERS for count in _binding_counts(program, groups)):
        groups = group(program, state_in_place=False)
    stored = stored_members(program, groups)
    order, in_place = _order(program, groups, stored)
    kernels: dict[str, Kernel] = {}
    with_matrices: dict[str, Kernel] = {}
    made: dict[Pattern, tuple[Kernel, tuple[int, ...]]] = {}
    dispatches = []
    for index in order:
        pattern, tensors = pattern_of(groups[index], stored[index], in_place)
        if pattern not in made:
            binder = Binder(groups[index], in_place)
            kernel = _kernel(_draft(groups[index], stored[index], binder, device, tile), binder)
            kernel = kernels.setdefault(kernel.name, kernel)
            if draft := _matrix_draft(groups[index], stored[index], binder, device, tile):
                with_matrices[kernel.name] = _kernel(draft, binder, name=kernel.name)
            made[pattern] = kernel, tuple(tensors.index(tensor) for tensor in binder.tensors)
        kernel, bound = made[pattern]
        dispatches.append(Dispatch(kernel, tuple(tensors[position] for position in bound)))
    return Schedule(dispatches, in_place, with_matrices)


def _binding_counts(program: LoopProgram, groups: list[Group]) -> list[int]:
    """How many storage buffers each group's kernel would bind."""
    stored = stored_members(program, groups)
    _, in_place = _order(program, groups, stored)
    counts = []
    for one, tensors in zip(groups, stored, strict=True):
        kept = {in_place.get(tensor, tensor) for tensor in [*tensors, *one.external()]}
        counts.append(len(kept))
    return counts


def _kernel(draft: KernelDraft, binder: Binder, name: str = "") -> Kernel:
    """Named after its text, unless it takes another's place."""
    kernel = Kernel(
        name, binder.buffers(), _uniforms(draft), draft.shared, draft.lanes, draft.groups, draft.body
    )
    kernel = vectorise(kernel)
    if not name:
        text = kernel_text(kernel) + repr(kernel.shared)
        digest = hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
        kernel = replace(kernel, name=f"{draft.kind}_{digest}")
    kernel_check(kernel)
    return kernel


def _draft(
    one: Group, stored: list[Tensor], binder: Binder, device: DeviceClass, tile: Tile | None
) -> KernelDraft:
    if one.contract is None:
        return rows_kernel(one, stored, binder, device)
    return contraction_kernel(one, stored, binder, tile or _tile(one.contract, device), fused=device != "cpu")


def _matrix_draft(
    one: Group, stored: list[Tensor], binder: Binder, device: DeviceClass, tile: Tile | None
) -> KernelDraft | None:
    if one.contract is None or device == "cpu":
        return None
    return matrix_kernel(one, stored, binder, tile or _tile(one.contract, device))


def _tile(contract: Contract, device: DeviceClass) -> Tile:
    return tile_for(device, ProductShape(contract.extents, contract.terms, contract.columns))


def _uniforms(draft: KernelDraft) -> tuple[tuple[str, Scalar], ...]:
    found = {(node.value, node.dtype) for node in nodes(*expressions(draft.body)) if node.op == "uniform"}
    return tuple(sorted(found))


def _order(
    program: LoopProgram, groups: list[Group], stored: list[list[Tensor]]
) -> tuple[list[int], dict[Tensor, Tensor]]:
    """An order in which state can be replaced in place: every reader of the old state before its replacement.

    Where that is impossible, because the reader needs the new state too or the group reads the old at other places,
    the new state gets memory of its own and is copied at the end of the step.
    """
    maker = {tensor: index for index, tensors in enumerate(stored) for tensor in tensors}
    made = {tensor.name: tensor for tensor in maker}
    after = [set(one.after) for one in groups]
    external = [one.external() for one in groups]
    in_place: dict[Tensor, Tensor] = {}
    for old_name, new_name in program.updates.items():
        old, new = program.inputs[old_name], made[new_name]
        writer = maker[new]
        readers = {index for index, tensors in enumerate(external) if old in tensors} - {writer}
        if not _reads_at_own_place(groups[writer], old, new) or _closes_a_circle(after, writer, readers):
            continue
        after[writer] |= readers
        in_place[new] = old
    return _sorted(after), in_place


def _reads_at_own_place(writer: Group, old: Tensor, new: Tensor) -> bool:
    """Whether the group reads the old state only at the element that the same lane replaces."""
    for member in writer.members:
        found: list[Expr] = [node for node in reads(*bodies(member)) if node.value == old]
        if not found:
            continue
        if isinstance(member, Contract) or writer.places[member.tensor] != writer.places[new]:
            return False
        domain, extents = domain_of(member)
        flat = index_var("flat", max(new.elements, 1))
        at = binding(domain, unflatten(flat, extents))
        if any(flat_read(substitute(node, at)) is not flat for node in found):
            return False
    return True


def _closes_a_circle(after: list[set[int]], writer: int, readers: set[int]) -> bool:
    """Whether a reader of the old state must run after the writer of the new."""
    waiting, seen = list(readers), set(readers)
    while waiting:
        index = waiting.pop()
        if index == writer:
            return True
        for earlier in after[index] - seen:
            seen.add(earlier)
            waiting.append(earlier)
    return False


def _sorted(after: list[set[int]]) -> list[int]:
    order: list[int] = []
    done: set[int] = set()
    while len(order) < len(after):
        index = next(i for i, needed in enumerate(after) if i not in done and needed <= done)
        done.add(index)
        order.append(index)
    return order
