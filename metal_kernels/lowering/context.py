"""What a lowering rule works with: a node's operands and attributes, and ways to define its outputs."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from metal_kernels.errors import UncompiledOp
from metal_kernels.ir.expr import INT_HIGH, INT_LOW, Expr, Tensor, cast, clamp, nodes, read, where
from metal_kernels.ir.loops import Combine, Contract, Definition, Map, Reduce, axes_of, bodies, contract_axes
from metal_kernels.ir.scalars import Scalar
from metal_kernels.program.graph import DType, Node, Ref, Value

SCALARS: Final[dict[DType, Scalar]] = {"float32": "f32", "int64": "i32", "int32": "i32", "bool": "bool"}
"""Phones have no 64-bit integers; feeds are checked to fit when they are uploaded."""


class Source:
    """An operand: a tensor that is read by coordinates."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.shape = tensor.shape
        self.dtype = tensor.dtype

    def at(self, *indices: Expr) -> Expr:
        return read(self.tensor, *indices)

    def padded(self, *indices: Expr, fill: float = 0) -> Expr:
        """The element, or `fill` where a coordinate lies outside. The read itself always stays inside."""
        inside = [clamp(index, 0, extent - 1) for index, extent in zip(indices, self.shape, strict=True)]
        value = self.at(*inside)
        for index, extent in zip(indices, self.shape, strict=True):
            value = where((index >= 0) & (index < extent), value, fill)
        return value

    def broadcast(self, indices: Sequence[Expr]) -> Expr:
        """The element that stands at these coordinates of a larger shape, by torch's broadcasting."""
        used = indices[len(indices) - len(self.shape) :]
        return self.at(
            *(index if extent > 1 else index * 0 for index, extent in zip(used, self.shape, strict=True))
        )


class Call:
    """One node of the program on its way to definitions, which are appended to `definitions`."""

    def __init__(self, node: Node, tensors: dict[str, Tensor], definitions: list[Definition]) -> None:
        self.node = node
        self._tensors = tensors
        self._definitions = definitions
        self._temporaries = 0

    def __getitem__(self, name: str) -> Any:
        return self.node.args[name]

    def number(self, name: str) -> float:
        return float(self[name])

    def referred(self, ref: Ref) -> Source:
        return Source(self._tensors[ref.ref])

    def source(self, name: str) -> Source:
        return self.referred(self[name])

    def sources(self, name: str) -> list[Source]:
        return [self.referred(ref) for ref in self[name]]

    def optional(self, name: str) -> Source | None:
        return None if self[name] is None else self.source(name)

    def output(self, position: int = 0) -> Tensor:
        """The tensor of an output that somebody uses."""
        value = self.node.outputs[position]
        if value is None:
            raise self.unsupported("has no such output")
        return self._declared(value)

    def wants(self, position: int) -> bool:
        return self.node.outputs[position] is not None

    def temporary(self, shape: Sequence[int], dtype: Scalar = "f32") -> Tensor:
        self._temporaries += 1
        return Tensor(f"{self.node.name}.{self._temporaries}", dtype, tuple(shape))

    def define_map(self, tensor: Tensor, body: Callable[..., Expr]) -> Source:
        """`body` takes one index for each dimension."""
        axes = axes_of(tensor.shape)
        return self._define(Map(tensor, axes, cast(body(*axes), tensor.dtype)))

    def define_reduce(
        self,
        tensor: Tensor,
        extents: Sequence[int],
        reduced: Sequence[int],
        combine: Combine,
        body: Callable[..., Expr],
    ) -> Source:
        """`body` takes one index for each of `extents`; the axes at `reduced` are combined."""
        domain = axes_of(extents)
        value = cast(body(*domain), tensor.dtype)
        positions = tuple(sorted(set(reduced)))
        return self._define(Reduce(tensor, domain, tuple(extents), positions, combine, value))

    def define_contract(
        self,
        tensor: Tensor,
        extents: tuple[int, int, int, int],
        left: Callable[[Expr, Expr, Expr], Expr],
        right: Callable[[Expr, Expr, Expr], Expr],
        *,
        terms: tuple[int, ...] = (),
        columns: tuple[int, ...] = (),
    ) -> Source:
        """Extents are of b, m, n, k; `left` takes (b, m, k), `right` (b, k, n)."""
        b, m, n, k = contract_axes(extents)
        return self._define(Contract(tensor, extents, left(b, m, k), right(b, k, n), terms, columns))

    def unsupported(self, what: str) -> UncompiledOp:
        return UncompiledOp(
            f"Node '{self.node.name}': {self.node.op} {what}, which cannot be compiled to kernels yet.",
            field=self.node.name,
        )

    def require(self, holds: bool, what: str) -> None:
        if not holds:
            raise self.unsupported(what)

    def _define(self, definition: Definition) -> Source:
        for node in nodes(*bodies(definition)):
            if node.op == "const" and node.dtype == "i32" and not INT_LOW <= node.value <= INT_HIGH:
                raise self.unsupported(
                    f"uses the whole number {node.value}, beyond the 32 bits that phones have"
                )
        self._definitions.append(definition)
        return Source(definition.tensor)

    def _declared(self, value: Value) -> Tensor:
        tensor = self._tensors[value.name] = tensor_of(value)
        return tensor


def tensor_of(value: Value) -> Tensor:
    return Tensor(value.name, SCALARS[value.dtype], value.shape)


Rule: TypeAlias = Callable[[Call], None]
