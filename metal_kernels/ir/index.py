"""Canonical forms. Integer arithmetic becomes a sum of terms with constant factors, the largest factor first.

Reshaping, slicing and permuting only ever change how an index is computed. With these rules the arithmetic of a chain
of views collapses: `(i * 8 + j) / 8` is `i` when `0 <= j < 8`, and `8 * (i / 8) + i % 8` is `i`. Comparisons that the
ranges decide become constants, so padding that is never hit leaves no trace in a kernel.
"""

from collections.abc import Callable
from functools import lru_cache
from math import gcd
from typing import Final, TypeAlias

from metal_kernels.ir.expr import INT_HIGH, INT_LOW, Expr, const, intern, nan
from metal_kernels.ir.scalars import Scalar

Terms: TypeAlias = dict[Expr, int]


def canonical(op: str, dtype: Scalar, args: tuple[Expr, ...]) -> Expr:
    """The canonical form of an operation whose operands are canonical and not all constant."""
    rules = _INTEGER_RULES if args[-1].dtype == "i32" else _OTHER_RULES
    rule = rules.get(op)
    found = rule(*args) if rule else None
    return found if found is not None else _node(op, dtype, args)


@lru_cache(maxsize=2**16)
def _node(op: str, dtype: Scalar, args: tuple[Expr, ...]) -> Expr:
    bounds = _BOUNDS[op](*args) if dtype == "i32" and op in _BOUNDS else (INT_LOW, INT_HIGH)
    clipped = (max(bounds[0], INT_LOW), min(bounds[1], INT_HIGH))
    return intern(op, dtype, args, bounds=clipped)


# Sums.


def _linear(expr: Expr) -> tuple[Terms, int]:
    """`expr` as terms with factors, and a constant."""
    if expr.op == "const":
        return {}, expr.value
    if expr.op == "add":
        terms, offset = _linear(expr.args[0])
        more, more_offset = _linear(expr.args[1])
        return _merged(terms, more, 1), offset + more_offset
    if expr.op == "mul" and expr.args[1].is_const:
        return {expr.args[0]: expr.args[1].value}, 0
    return {expr: 1}, 0


def _merged(terms: Terms, more: Terms, factor: int) -> Terms:
    merged = dict(terms)
    for term, count in more.items():
        merged[term] = merged.get(term, 0) + factor * count
    return {term: count for term, count in merged.items() if count}


def _sum(terms: Terms, offset: int) -> Expr:
    """Terms as one expression: quotient and remainder of one value joined, the largest factor first."""
    terms, offset = _joined(terms, offset)
    ordered = list(terms.items())
    if len(ordered) > 1:
        ordered.sort(key=lambda item: (-abs(item[1]), item[0].digest))
    parts = [
        term if factor == 1 else _node("mul", "i32", (term, const(factor, "i32"))) for term, factor in ordered
    ]
    if offset or not parts:
        parts.append(const(offset, "i32"))
    total = parts[0]
    for part in parts[1:]:
        total = _node("add", "i32", (total, part))
    return total


def _joined(terms: Terms, offset: int) -> tuple[Terms, int]:
    """`f * c * (e / c) + f * (e % c)` is `f * e`."""
    for remainder, factor in list(terms.items()):
        if remainder.op != "mod" or not remainder.args[1].is_const:
            continue
        value, divisor = remainder.args
        quotient = value // divisor
        if terms.get(quotient) == factor * divisor.value:
            rest = {
                term: count for term, count in terms.items() if term is not remainder and term is not quotient
            }
            whole, more = _linear(value)
            return _joined(_merged(rest, whole, factor), offset + factor * more)
    return terms, offset


def _add(a: Expr, b: Expr) -> Expr:
    terms, offset = _linear(a)
    more, more_offset = _linear(b)
    return _sum(_merged(terms, more, 1), offset + more_offset)


def _sub(a: Expr, b: Expr) -> Expr:
    terms, offset = _linear(a)
    more, more_offset = _linear(b)
    return _sum(_merged(terms, more, -1), offset - more_offset)


def _mul(a: Expr, b: Expr) -> Expr | None:
    if a.is_const:
        a, b = b, a
    if not b.is_const:
        return None
    terms, offset = _linear(a)
    return _sum({term: count * b.value for term, count in terms.items() if b.value}, offset * b.value)


def _neg(a: Expr) -> Expr | None:
    return _mul(a, const(-1, "i32"))


# Quotients and remainders by a constant, of values that are not negative.


def _split(a: Expr, divisor: int) -> tuple[Expr, Expr]:
    """`a` as `divisor * whole + rest`."""
    terms, offset = _linear(a)
    whole = {term: count // divisor for term, count in terms.items() if count % divisor == 0}
    rest = {term: count for term, count in terms.items() if count % divisor}
    return _sum(whole, offset // divisor), _sum(rest, offset % divisor)


def _idiv(a: Expr, b: Expr) -> Expr | None:
    if not b.is_const or a.low < 0:
        return None
    divisor: int = b.value
    if divisor == 1 or a.high < divisor:
        return a if divisor == 1 else const(0, "i32")
    whole, rest = _split(a, divisor)
    if rest.low >= 0 and whole.low >= 0 and not (whole.is_const and whole.value == 0):
        return whole + _idiv_or_node(rest, b)
    inner = _sole_quotient(a)
    if inner is not None:
        return inner[0] // const(inner[1] * divisor, "i32")
    if a.op == "mod" and a.args[1].is_const and a.args[1].value % divisor == 0:
        return (a.args[0] // divisor) % const(a.args[1].value // divisor, "i32")
    coarse = _coarse(a, divisor)
    return coarse[1] // (divisor // coarse[0]) if coarse else None


def _mod(a: Expr, b: Expr) -> Expr | None:
    if not b.is_const or a.low < 0:
        return None
    divisor: int = b.value
    if a.high < divisor:
        return a
    whole, rest = _split(a, divisor)
    if rest is not a and rest.low >= 0 and whole.low >= 0:
        return rest % divisor
    if a.op == "mod" and a.args[1].is_const and a.args[1].value % divisor == 0:
        return a.args[0] % divisor
    coarse = _coarse(a, divisor)
    return (coarse[1] % (divisor // coarse[0])) * coarse[0] + coarse[2] if coarse else None


def _sole_quotient(a: Expr) -> tuple[Expr, int] | None:
    """For `e / c + d`, which is `(e + c * d) / c`: the sum and the divisor."""
    terms, offset = _linear(a)
    [(term, factor), *rest] = terms.items()
    if rest or factor != 1 or term.op != "idiv" or not term.args[1].is_const:
        return None
    divisor: int = term.args[1].value
    return (term.args[0] + offset * divisor, divisor) if offset >= 0 else None


def _idiv_or_node(a: Expr, b: Expr) -> Expr:
    if a.is_const:
        return const(a.value // b.value, "i32")
    found = _idiv(a, b)
    return _node("idiv", "i32", (a, b)) if found is None else found


def _coarse(a: Expr, divisor: int) -> tuple[int, Expr, Expr] | None:
    """`a` as `unit * whole + rest` with `0 <= rest < unit`, where `unit` divides the divisor."""
    terms, _ = _linear(a)
    for unit in sorted({gcd(divisor, count) for count in terms.values()} - {1}, reverse=True):
        whole, rest = _split(a, unit)
        if whole.low >= 0 and rest.low >= 0 and rest.high < unit:
            return unit, whole, rest
    return None


# Comparisons and choices, decided by ranges where they can be.


def _lt(a: Expr, b: Expr) -> Expr | None:
    if a.high < b.low or a.low >= b.high:
        return const(a.high < b.low, "bool")
    return None


def _le(a: Expr, b: Expr) -> Expr | None:
    if a.high <= b.low or a.low > b.high:
        return const(a.high <= b.low, "bool")
    return None


def _eq(a: Expr, b: Expr) -> Expr | None:
    if a is b or a.high < b.low or b.high < a.low:
        return const(a is b, "bool")
    return None


def _min(a: Expr, b: Expr) -> Expr | None:
    return a if a.high <= b.low else b if b.high <= a.low else None


def _max(a: Expr, b: Expr) -> Expr | None:
    return a if a.low >= b.high else b if b.low >= a.high else None


def _where(condition: Expr, then: Expr, otherwise: Expr) -> Expr | None:
    if condition.is_const:
        return then if condition.value else otherwise
    if then is nan() and _is_nan_test(condition):
        # What was tested is one, and at hand.
        return _node("where", "f32", (condition, condition.args[0].args[0], otherwise))
    return then if then is otherwise else None


def _is_nan_test(condition: Expr) -> bool:
    """Whether it asks if a number differs from itself."""
    compared = condition.args[0] if condition.op == "not" else None
    return compared is not None and compared.op == "eq" and compared.args[0] is compared.args[1]


def _and(a: Expr, b: Expr) -> Expr | None:
    for known, other in ((a, b), (b, a)):
        if known.is_const:
            return other if known.value else known
    return a if a is b else None


def _or(a: Expr, b: Expr) -> Expr | None:
    for known, other in ((a, b), (b, a)):
        if known.is_const:
            return known if known.value else other
    return a if a is b else None


# Floating point: only what changes no result.


def _times(a: Expr, b: Expr) -> Expr | None:
    return _without_neutral(a, b, 1)


def _plus(a: Expr, b: Expr) -> Expr | None:
    return _without_neutral(a, b, 0)


def _without_neutral(a: Expr, b: Expr, neutral: int) -> Expr | None:
    for known, other in ((a, b), (b, a)):
        if known.is_const and known.value == neutral:
            return other
    return None


def _minus(a: Expr, b: Expr) -> Expr | None:
    return a if b.is_const and b.value == 0 else None


def _over(a: Expr, b: Expr) -> Expr | None:
    """Division by a power of two is exact as a multiplication."""
    if (
        b.is_const
        and b.value
        and float(b.value).hex().split("p")[0] in ("0x1.0000000000000", "-0x1.0000000000000")
    ):
        return a * const(1 / b.value, "f32")
    return None


_Rules: TypeAlias = dict[str, Callable[..., Expr | None]]
_INTEGER_RULES: Final[_Rules] = {
    "add": _add, "sub": _sub, "mul": _mul, "neg": _neg, "idiv": _idiv, "mod": _mod,
    "lt": _lt, "le": _le, "eq": _eq, "min": _min, "max": _max, "where": _where,
}  # fmt: skip
_OTHER_RULES: Final[_Rules] = {
    "add": _plus, "sub": _minus, "mul": _times, "div": _over, "where": _where, "and": _and, "or": _or,
}  # fmt: skip


def _product_bounds(a: Expr, b: Expr) -> tuple[int, int]:
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return min(corners), max(corners)


_BOUNDS: Final[dict[str, Callable[..., tuple[int, int]]]] = {
    "add": lambda a, b: (a.low + b.low, a.high + b.high),
    "sub": lambda a, b: (a.low - b.high, a.high - b.low),
    "mul": _product_bounds,
    "idiv": lambda a, b: (
        (a.low // b.high, a.high // b.low) if a.low >= 0 and b.low > 0 else (INT_LOW, INT_HIGH)
    ),
    "mod": lambda a, b: (0, b.high - 1) if a.low >= 0 and b.low > 0 else (INT_LOW, INT_HIGH),
    "min": lambda a, b: (min(a.low, b.low), min(a.high, b.high)),
    "max": lambda a, b: (max(a.low, b.low), max(a.high, b.high)),
    "where": lambda _, a, b: (min(a.low, b.low), max(a.high, b.high)),
    "to_i32": lambda a: (0, 1) if a.dtype == "bool" else (INT_LOW, INT_HIGH),
}
