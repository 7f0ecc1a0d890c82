"""From tensors to buffers: which buffers a kernel binds, and how its expressions load from them."""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeAlias

from metal_kernels.ir.expr import Expr, Tensor, cast, memory, nodes, rebuild
from metal_kernels.ir.kernel import Access, Buffer, Shared, Statement
from metal_kernels.ir.loops import Definition, Map, flat_read, sources
from metal_kernels.ir.scalars import Scalar, StoredScalar
from metal_kernels.passes.group import Group

Known: TypeAlias = Callable[[Tensor, Expr], Expr | None]
"""The value of a tensor at a flat index, if the kernel makes the tensor itself."""


@dataclass(frozen=True)
class KernelDraft:
    """A kernel before its buffers are known."""

    kind: str
    lanes: int
    groups: tuple[int, int, int]
    shared: tuple[Shared, ...]
    body: tuple[Statement, ...]


def storage_dtype(dtype: Scalar) -> StoredScalar:
    """Storage holds no bools."""
    return "i32" if dtype == "bool" else dtype


class Binder:
    """Gives tensors buffer names in the order of their first use: equal work gives equal kernels.

    A tensor that replaces another in place goes by the other's buffer.
    """

    def __init__(self, group: Group, in_place: Mapping[Tensor, Tensor]) -> None:
        self._made = group.places.keys()
        self._in_place = in_place
        self._names: dict[Tensor, str] = {}
        self._loaded: set[str] = set()
        self._stored: set[str] = set()

    @property
    def tensors(self) -> list[Tensor]:
        """The bound tensors, in the order of the kernel's buffers."""
        return list(self._names)

    def buffers(self) -> tuple[Buffer, ...]:
        return tuple(self._buffer(tensor, name) for tensor, name in self._names.items())

    def internal_sources(self, member: Definition) -> AbstractSet[Tensor]:
        return sources(member) & self._made

    def resolve(self, body: Expr, at: Mapping[Expr, Expr], known: Known) -> Expr:
        """`body` at a place, with every read replaced by a value the kernel has or by a load."""
        done: dict[Expr, Expr] = dict(at)
        for node in nodes(body):
            if node not in done:
                new = rebuild(node, tuple([done[arg] for arg in node.args])) if node.args else node
                done[node] = self._value(new, known) if new.op == "read" else new
        return done[body]

    def _value(self, node: Expr, known: Known) -> Expr:
        tensor: Tensor = node.value
        value = known(tensor, flat_read(node))
        if value is None:
            name = self._name(self._in_place.get(tensor, tensor))
            self._loaded.add(name)
            value = cast(memory("load", storage_dtype(tensor.dtype), name, flat_read(node)), tensor.dtype)
        return value

    def stored(self, tensor: Tensor, index: Expr, value: Expr) -> tuple[str, Expr, Expr]:
        """The arguments of the store of one element."""
        name = self._name(self._in_place.get(tensor, tensor))
        self._stored.add(name)
        return name, index, cast(value, storage_dtype(tensor.dtype))

    @staticmethod
    def store_index(member: Definition, flat: Expr) -> Expr:
        """Where an element goes: in its order, except for a record kept under the number of the step."""
        if isinstance(member, Map) and any(axis.op == "uniform" for axis in member.axes):
            return member.axes[0]
        return flat

    def _name(self, tensor: Tensor) -> str:
        return self._names.setdefault(tensor, f"b{len(self._names)}")

    def _buffer(self, tensor: Tensor, name: str) -> Buffer:
        access: Access = "read"
        if name in self._stored:
            access = "read_write" if name in self._loaded else "write"
        elements = tensor.elements if tensor.elements >= 0 else None
        return Buffer(name, storage_dtype(tensor.dtype), elements, access)
