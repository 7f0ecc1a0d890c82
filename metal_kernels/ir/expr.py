"""Scalar expressions: typed, immutable, shared. Two equal expressions are one object, so `is` compares them.

Integer expressions are canonical by construction (`index.py`) and know their range, so a view of a view of a tensor
costs no more arithmetic than the tensor itself, and an index can be proven to lie inside its buffer.

Leaves: `const`, `var` (a loop variable, a lane, a local), `uniform` (a number that changes from step to step).
`read` is an element of a tensor by its coordinates; scheduling turns it into `load`, an element of a buffer by its
flat index, or `shared`, an element of workgroup memory. `load4` gives four neighbours, of which `lane4` takes one.
"""

import hashlib
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from math import prod
from threading import Lock
from typing import Any, Final, TypeAlias
from weakref import WeakValueDictionary

import numpy as np

from metal_kernels.ir.scalars import FLOAT_MAX, NUMPY_DTYPES, SCALAR_OPS, Scalar

INT_LOW: Final = -(2**31)
INT_HIGH: Final = 2**31 - 1
LEAVES: Final = frozenset({"const", "var", "uniform"})
MEMORY: Final = frozenset({"read", "load", "load4", "shared"})

Number: TypeAlias = float | int | bool
Operand: TypeAlias = "Expr | Number"


@dataclass(frozen=True)
class Tensor:
    """A named array in memory, row-major."""

    name: str
    dtype: Scalar
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        return prod(self.shape)


class Expr:
    """One node. `value` is the constant, the name of a variable, uniform or buffer, or the tensor that is read.

    `low` and `high` bound an integer. `digest` depends on the structure alone; it orders terms the same way in
    every process.
    """

    __slots__ = ("__weakref__", "_below", "_digest", "args", "dtype", "high", "low", "op", "value")

    def __init__(
        self, op: str, dtype: Scalar, args: tuple["Expr", ...], value: Any, bounds: tuple[int, int]
    ) -> None:
        self.op = op
        self.dtype: Scalar = dtype
        self.args = args
        self.value = value
        self.low, self.high = bounds
        self._digest: bytes | None = None
        self._below: tuple[Expr, ...] | None = None

    @property
    def below(self) -> tuple["Expr", ...]:
        """Every node that it is made of, once, operands before their users. Passes ask for the same roots over and
        over, so it is kept; without the node itself, which would keep itself alive."""
        if self._below is None:
            self._below = tuple(_walk(self))
        return self._below

    @property
    def digest(self) -> bytes:
        """Made when it is first asked for: few nodes are ever ordered."""
        if self._digest is None:
            bounds = (self.low, self.high) if self.op == "var" else None
            text = repr((self.op, self.dtype, self.value, bounds, [arg.digest for arg in self.args]))
            self._digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
        return self._digest

    def __repr__(self) -> str:
        from metal_kernels.ir.printer import expr_text

        return expr_text(self)

    def __bool__(self) -> bool:
        raise TypeError("An expression has no truth value while kernels are built; compare with `is`.")

    @property
    def is_const(self) -> bool:
        return self.op == "const"

    def __add__(self, other: Operand) -> "Expr":
        return apply("add", self, self._like(other))

    def __radd__(self, other: Number) -> "Expr":
        return apply("add", self._like(other), self)

    def __sub__(self, other: Operand) -> "Expr":
        return apply("sub", self, self._like(other))

    def __rsub__(self, other: Number) -> "Expr":
        return apply("sub", self._like(other), self)

    def __mul__(self, other: Operand) -> "Expr":
        return apply("mul", self, self._like(other))

    def __rmul__(self, other: Number) -> "Expr":
        return apply("mul", self._like(other), self)

    def __truediv__(self, other: Operand) -> "Expr":
        return apply("div", self, self._like(other))

    def __rtruediv__(self, other: Number) -> "Expr":
        return apply("div", self._like(other), self)

    def __floordiv__(self, other: Operand) -> "Expr":
        return apply("idiv", self, self._like(other))

    def __mod__(self, other: Operand) -> "Expr":
        return apply("mod", self, self._like(other))

    def __neg__(self) -> "Expr":
        return apply("neg", self)

    def __lt__(self, other: Operand) -> "Expr":
        return apply("lt", self, self._like(other))

    def __le__(self, other: Operand) -> "Expr":
        return apply("le", self, self._like(other))

    def __gt__(self, other: Operand) -> "Expr":
        return apply("lt", self._like(other), self)

    def __ge__(self, other: Operand) -> "Expr":
        return apply("le", self._like(other), self)

    def __and__(self, other: "Expr") -> "Expr":
        return apply("and", self, other)

    def __or__(self, other: "Expr") -> "Expr":
        return apply("or", self, other)

    def __invert__(self) -> "Expr":
        return apply("not", self)

    def equals(self, other: Operand) -> "Expr":
        return apply("eq", self, self._like(other))

    def _like(self, other: Operand) -> "Expr":
        return other if isinstance(other, Expr) else const(other, self.dtype)


_interned: Final[WeakValueDictionary[tuple[Any, ...], Expr]] = WeakValueDictionary()
"""Nodes that nothing uses any more are forgotten: servers compile for months."""
_interning: Final = Lock()
_ANY: Final = (INT_LOW, INT_HIGH)


def intern(
    op: str, dtype: Scalar, args: tuple[Expr, ...] = (), value: Any = None, bounds: tuple[int, int] = _ANY
) -> Expr:
    """The one object for this node. `apply` and the constructors below are the usual way here."""
    # 1, 1.0 and True are equal keys, and so are 0.0 and -0.0: the text tells them apart.
    key = (op, dtype, args, repr(value) if op == "const" else value, bounds)
    found = _interned.get(key)
    if found is None:
        with _interning:  # programs may be compiled in several threads
            found = _interned.get(key)
            if found is None:
                found = _interned[key] = Expr(op, dtype, args, value, bounds)
    return found


def const(value: Number, dtype: Scalar) -> Expr:
    """A constant; infinities become the largest finite number, and NaN is `nan()`."""
    if dtype == "i32":
        return _integer(int(value))
    if dtype == "f32":
        if math.isnan(value):
            return nan()
        rounded = float(np.float32(min(max(value, -FLOAT_MAX), FLOAT_MAX)))
        return intern("const", dtype, value=rounded)
    if dtype == "bool":
        return intern("const", dtype, value=bool(value), bounds=(int(bool(value)),) * 2)
    return intern("const", dtype, value=int(value), bounds=(int(value),) * 2)


@cache
def nan() -> Expr:
    """What is not a number. WGSL has no constant for it and refuses constants that make one, so it is the root of a
    number below zero that no compiler knows: whatever the learning rate is."""
    return apply("sqrt", -1 - apply("abs", uniform("lr", "f32")))


@lru_cache(maxsize=2**14)
def _integer(value: int) -> Expr:
    return intern("const", "i32", value=value, bounds=(value, value))


def index_var(name: str, extent: int) -> Expr:
    """An integer variable of 0 <= value < extent."""
    return const(0, "i32") if extent == 1 else intern("var", "i32", value=name, bounds=(0, extent - 1))


def local_var(name: str, dtype: Scalar, bounds: tuple[int, int] = _ANY) -> Expr:
    return intern("var", dtype, value=name, bounds=bounds)


def uniform(name: str, dtype: Scalar) -> Expr:
    return intern("uniform", dtype, value=name, bounds=(0, INT_HIGH) if dtype == "i32" else _ANY)


def read(tensor: Tensor, *indices: Expr) -> Expr:
    return intern("read", tensor.dtype, indices, tensor)


def memory(op: str, dtype: Scalar, name: str, *args: Expr) -> Expr:
    """A `load`, `load4` or `shared` of the buffer or workgroup array `name`."""
    return intern(op, dtype, args, name)


def lane4(vector: Expr, lane: int) -> Expr:
    return intern("lane4", vector.dtype, (vector,), lane)


def apply(op: str, *args: Expr) -> Expr:
    """An operation of `SCALAR_OPS` on its operands, in canonical form."""
    return _applied(op, args)


@lru_cache(maxsize=2**16)
def _applied(op: str, args: tuple[Expr, ...]) -> Expr:
    from metal_kernels.ir.index import canonical

    dtype = SCALAR_OPS[op].result(tuple(arg.dtype for arg in args))
    if dtype is None:
        raise TypeError(f"{op} does not take ({', '.join(arg.dtype for arg in args)})")
    if all(arg.is_const for arg in args):
        operands = [NUMPY_DTYPES[arg.dtype](arg.value) for arg in args]
        return const(SCALAR_OPS[op].numpy(*operands).item(), dtype)
    return canonical(op, dtype, args)


def where(condition: Expr, then: Operand, otherwise: Operand) -> Expr:
    """`then` or `otherwise`; a number takes the dtype of the other side, or f32."""
    typed = then if isinstance(then, Expr) else otherwise
    dtype: Scalar = typed.dtype if isinstance(typed, Expr) else "f32"
    sides = [side if isinstance(side, Expr) else const(side, dtype) for side in (then, otherwise)]
    return apply("where", condition, *sides)


def cast(expr: Expr, dtype: Scalar) -> Expr:
    if expr.dtype == dtype:
        return expr
    if dtype == "bool":
        return differs(expr, const(0, expr.dtype))
    return apply(f"to_{dtype}", expr)


def differs(a: Expr, b: Expr) -> Expr:
    """Whether two numbers are not equal. NaN differs from all; the `!=` of some drivers says that it does not."""
    return ~apply("eq", a, b) if a.dtype == "f32" else apply("ne", a, b)


def clamp(expr: Expr, low: Operand, high: Operand) -> Expr:
    return apply("min", apply("max", expr, expr._like(low)), expr._like(high))


def flatten(indices: Iterable[Expr], shape: tuple[int, ...]) -> Expr:
    """The row-major flat index."""
    flat = const(0, "i32")
    for index, extent in zip(indices, shape, strict=True):
        flat = flat * extent + index
    return flat


def unflatten(flat: Expr, shape: tuple[int, ...]) -> tuple[Expr, ...]:
    """The coordinates of a flat index."""
    indices: list[Expr] = []
    for position, extent in enumerate(shape):
        index = flat // prod(shape[position + 1 :])
        indices.append(index if position == 0 else index % extent)
    return tuple(indices)


def nodes(*roots: Expr) -> Collection[Expr]:
    """Every node once, operands before their users."""
    if len(roots) == 1:
        return (*roots[0].below, roots[0])
    found: dict[Expr, None] = {}
    for root in roots:
        if root not in found:
            found.update(dict.fromkeys(root.below))
            found[root] = None
    return found


def _walk(root: Expr) -> Iterator[Expr]:
    """Every node but the root once, operands before their users."""
    seen: set[Expr] = set()
    stack: list[Expr | tuple[Expr]] = list(reversed(root.args))
    while stack:
        node = stack.pop()
        if isinstance(node, tuple):  # its operands are done
            yield node[0]
        elif node not in seen:
            seen.add(node)
            if node.args:
                stack.append((node,))
                stack.extend(reversed(node.args))
            else:
                yield node


def rebuild(node: Expr, args: tuple[Expr, ...]) -> Expr:
    """The node with other operands, made canonical again."""
    if args == node.args:
        return node
    if node.op in SCALAR_OPS:
        return apply(node.op, *args)
    return intern(node.op, node.dtype, args, node.value, (node.low, node.high))


class Substitution:
    """Puts expressions in place of nodes, in one expression after another: what they share is rewritten once.

    Replacements are not looked into again. One may be added as long as its node was in no expression before.
    """

    def __init__(self, replacements: Mapping[Expr, Expr] | None = None) -> None:
        self._done: dict[Expr, Expr] = dict(replacements or {})

    def add(self, node: Expr, replacement: Expr) -> None:
        self._done[node] = replacement

    def of(self, root: Expr) -> Expr:
        done = self._done
        if root not in done:
            for node in nodes(root):
                if node not in done:
                    done[node] = rebuild(node, tuple([done[arg] for arg in node.args])) if node.args else node
        return done[root]


def substitute(root: Expr, replacements: Mapping[Expr, Expr]) -> Expr:
    """`root` with some of its nodes replaced."""
    return Substitution(replacements).of(root)


def reads(*roots: Expr) -> list[Expr]:
    return [node for node in nodes(*roots) if node.op == "read"]
