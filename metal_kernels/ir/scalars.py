"""The scalar operations of the kernel IR: one row each, with its typing rule and its meaning in numpy.

Every other stage is a table with these names as keys: the simplifier, the renderers, the interpreter. Integers are
32 bits; `idiv` and `mod` are only used on values that are not negative.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np

StoredScalar: TypeAlias = Literal["f32", "i32", "u32"]
Scalar: TypeAlias = StoredScalar | Literal["bool"]
Typing: TypeAlias = Literal[
    "number", "float", "integer", "compare", "logic", "select", "to_f32", "to_i32", "to_u32"
]

NUMPY_DTYPES: Final[dict[Scalar, type[np.generic]]] = {
    "f32": np.float32,
    "i32": np.int32,
    "u32": np.uint32,
    "bool": np.bool_,
}
FLOAT_MAX: Final = 3.4028234663852886e38
"""Stands for infinity: shader compilers may assume that there is none, so kernels hold no infinite constant."""


@dataclass(frozen=True)
class ScalarOp:
    """`cost` weighs the operation in multiples of an addition; it guides what may be computed twice."""

    name: str
    arity: int
    typing: Typing
    numpy: Callable[..., Any]
    cost: int = 1

    def result(self, dtypes: tuple[Scalar, ...]) -> Scalar | None:
        """The dtype of the result, or None where the operands do not fit."""
        if len(dtypes) != self.arity:
            return None
        return _RESULTS[self.typing](dtypes)


def _same(dtypes: tuple[Scalar, ...], allowed: tuple[Scalar, ...]) -> Scalar | None:
    return dtypes[0] if len(set(dtypes)) == 1 and dtypes[0] in allowed else None


def _compare(dtypes: tuple[Scalar, ...]) -> Scalar | None:
    return "bool" if len(set(dtypes)) == 1 else None


def _select(dtypes: tuple[Scalar, ...]) -> Scalar | None:
    condition, then, otherwise = dtypes
    return then if condition == "bool" and then == otherwise else None


_RESULTS: Final[dict[Typing, Callable[[tuple[Scalar, ...]], Scalar | None]]] = {
    "number": lambda dtypes: _same(dtypes, ("f32", "i32", "u32")),
    "float": lambda dtypes: _same(dtypes, ("f32",)),
    "integer": lambda dtypes: _same(dtypes, ("i32", "u32")),
    "logic": lambda dtypes: _same(dtypes, ("bool",)),
    "compare": _compare,
    "select": _select,
    "to_f32": lambda dtypes: "f32",
    "to_i32": lambda dtypes: "i32",
    "to_u32": lambda dtypes: "u32",
}


def _rows(typing: Typing, arity: int, cost: int, **meanings: Callable[..., Any]) -> list[ScalarOp]:
    return [ScalarOp(name, arity, typing, meaning, cost) for name, meaning in meanings.items()]


def _quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """Numbers that overflow or are not numbers are results like any other, not warnings."""

    def quietly(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*args)

    return quietly


SCALAR_OPS: Final[dict[str, ScalarOp]] = {
    row.name: row
    for row in [
        *_rows(
            "number", 2, 1,
            add=_quiet(np.add), sub=_quiet(np.subtract), mul=_quiet(np.multiply), min=np.minimum, max=np.maximum,
        ),
        *_rows("number", 1, 1, neg=_quiet(np.negative), abs=np.abs, sign=np.sign),
        *_rows("float", 3, 1, fma=_quiet(lambda a, b, c: a * b + c)),
        *_rows("float", 2, 4, div=_quiet(np.divide)),
        *_rows("float", 2, 8, pow=_quiet(np.power)),
        *_rows(
            "float", 1, 8,
            exp=_quiet(np.exp), log=_quiet(np.log), tanh=np.tanh, sin=np.sin, cos=np.cos, sqrt=_quiet(np.sqrt),
            rsqrt=_quiet(lambda x: (1 / np.sqrt(x)).astype(np.float32)),
        ),
        *_rows("float", 1, 1, floor=np.floor, ceil=np.ceil, round=np.round),
        *_rows("integer", 2, 4, idiv=np.floor_divide, mod=np.mod),
        *_rows(
            "integer", 2, 1,
            bit_and=np.bitwise_and, bit_or=np.bitwise_or, bit_xor=np.bitwise_xor, shift_right=np.right_shift,
        ),
        *_rows("compare", 2, 1, eq=np.equal, ne=np.not_equal, lt=np.less, le=np.less_equal),
        *_rows("logic", 2, 1, **{"and": np.logical_and, "or": np.logical_or}),
        *_rows("logic", 1, 1, **{"not": np.logical_not}),
        *_rows("select", 3, 1, where=np.where),
        *_rows("to_f32", 1, 1, to_f32=lambda x: np.asarray(x).astype(np.float32)),
        *_rows("to_i32", 1, 1, to_i32=_quiet(lambda x: np.asarray(x).astype(np.int32))),
        *_rows("to_u32", 1, 1, to_u32=_quiet(lambda x: np.asarray(x).astype(np.uint32))),
    ]
}  # fmt: skip
