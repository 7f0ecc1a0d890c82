"""Operations that give each element from the elements at the same place."""

import math
from collections.abc import Callable
from typing import Final

from metal_kernels.ir.expr import Expr, apply, cast, clamp, const, differs, where
from metal_kernels.ir.scalars import FLOAT_MAX, Scalar
from metal_kernels.lowering.context import Call, Rule


def _unary(body: Callable[[Expr], Expr]) -> Rule:
    def rule(call: Call) -> None:
        source, output = call.source("self"), call.output()
        call.define_map(output, lambda *at: body(cast(source.at(*at), output.dtype)))

    return rule


def _binary(body: Callable[[Expr, Expr], Expr], left: str = "self", right: str = "other") -> Rule:
    """Operands are broadcast; like torch, the narrower dtype gives way."""

    def rule(call: Call) -> None:
        a, b = call.source(left), call.source(right)
        call.define_map(call.output(), lambda *at: body(*_promoted(a.broadcast(at), b.broadcast(at))))

    return rule


def _with_scalar(body: Callable[[Expr, Expr], Expr], name: str = "other") -> Rule:
    def rule(call: Call) -> None:
        source, output = call.source("self"), call.output()
        number = call[name]
        is_float = isinstance(number, float | str) or "f32" in (source.dtype, output.dtype)
        dtype: Scalar = "f32" if is_float else "i32"
        scalar = const(float(number) if dtype == "f32" else int(number), dtype)
        call.define_map(output, lambda *at: body(cast(source.at(*at), dtype), scalar))

    return rule


def _promoted(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    if a.dtype == b.dtype:
        return a, b
    dtype: Scalar = "f32" if "f32" in (a.dtype, b.dtype) else "i32"
    return cast(a, dtype), cast(b, dtype)


def _scaled(sign: int, swap: bool = False) -> Callable[[Call], Callable[[Expr, Expr], Expr]]:
    """Addition and subtraction with torch's `alpha`, which scales the second operand."""

    def make(call: Call) -> Callable[[Expr, Expr], Expr]:
        factor = sign * call["alpha"]

        def body(a: Expr, b: Expr) -> Expr:
            a, b = (b, a) if swap else (a, b)
            if factor in (1, -1):
                return a + b if factor == 1 else a - b
            scaled: Expr = a + b * factor
            return scaled

        return body

    return make


def _add_like(
    make_rule: Callable[..., Rule], make_body: Callable[[Call], Callable[[Expr, Expr], Expr]]
) -> Rule:
    return lambda call: make_rule(make_body(call))(call)


def _div(call: Call) -> None:
    a, b, output = call.source("self"), call.source("other"), call.output()
    call.define_map(output, lambda *at: cast(a.broadcast(at), "f32") / cast(b.broadcast(at), "f32"))


def _rsub(call: Call) -> None:
    """other - alpha * self."""
    source, output = call.source("self"), call.output()
    other = const(call["other"], output.dtype)
    call.define_map(output, lambda *at: other - cast(source.at(*at), output.dtype) * call["alpha"])


def _pow_number(call: Call) -> None:
    source, exponent = call.source("self"), call.number("exponent")
    call.require(call.output().dtype == "f32", "works on integers")
    call.define_map(call.output(), lambda *at: _power(cast(source.at(*at), "f32"), exponent))


def _power_of_number(call: Call) -> None:
    """A known number to the power of each element."""
    exponent, base = call.source("exponent"), call.number("self")
    call.require(call.output().dtype == "f32" and base >= 0, "works on integers or a negative number")
    if base == 0:
        call.define_map(call.output(), lambda *at: cast(cast(exponent.at(*at), "f32").equals(0), "f32"))
        return
    call.define_map(call.output(), lambda *at: apply("exp", cast(exponent.at(*at), "f32") * math.log(base)))


def _power(x: Expr, exponent: float) -> Expr:
    """x to a known power. The `pow` of shaders is undefined for a negative base."""
    if exponent < 0:
        return 1 / _power(x, -exponent)
    if exponent == 0.5:
        return apply("sqrt", x)
    if not exponent.is_integer():
        return apply("pow", x, const(exponent, "f32"))
    whole = int(exponent)
    if whole > _LARGEST_UNROLLED_POWER:
        size = apply("pow", apply("abs", x), const(exponent, "f32"))
        return apply("sign", x) * size if whole % 2 else size
    result, square = const(1, "f32"), x
    while whole:
        result = result * square if whole % 2 else result
        square, whole = square * square, whole // 2
    return result


_LARGEST_UNROLLED_POWER: Final = 16


def _clamp(call: Call) -> None:
    source, output = call.source("self"), call.output()
    low, high = (None if call[name] is None else call.number(name) for name in ("min", "max"))

    def body(*at: Expr) -> Expr:
        x = cast(source.at(*at), output.dtype)
        x = x if low is None else apply("max", x, const(low, output.dtype))
        return x if high is None else apply("min", x, const(high, output.dtype))

    call.define_map(output, body)


def _where(call: Call) -> None:
    condition, a, b = (call.source(name) for name in ("condition", "self", "other"))

    def body(*at: Expr) -> Expr:
        return where(cast(condition.broadcast(at), "bool"), *_promoted(a.broadcast(at), b.broadcast(at)))

    call.define_map(call.output(), body)


def _gelu(call: Call) -> None:
    source = call.source("self")
    body = gelu_tanh if call["approximate"] == "tanh" else gelu
    call.define_map(call.output(), lambda *at: body(source.at(*at)))


def gelu(x: Expr) -> Expr:
    return x * 0.5 * (erf(x * math.sqrt(0.5)) + 1)


def gelu_tanh(x: Expr) -> Expr:
    return x * 0.5 * (tanh((x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)) + 1)


def erf(x: Expr) -> Expr:
    """A rational approximation, good to the last bits of float32 (the one in Eigen and XLA)."""
    x = clamp(x, -4.0, 4.0)
    square = x * x
    return x * _polynomial(square, _ERF_NUMERATOR) / _polynomial(square, _ERF_DENOMINATOR)


def _polynomial(x: Expr, coefficients: tuple[float, ...]) -> Expr:
    total = const(coefficients[0], "f32")
    for coefficient in coefficients[1:]:
        total = total * x + coefficient
    return total


_ATAN: Final = (
    2.78569828e-3, -1.58660226e-2, 4.24722321e-2, -7.49753043e-2, 1.06448799e-1, -1.42070308e-1, 1.99934542e-1,
    -3.33331466e-1, 1.0,
)  # fmt: skip
_ERF_NUMERATOR: Final = (
    -2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
    -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02,
)  # fmt: skip
_ERF_DENOMINATOR: Final = (
    -1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03,
    -1.42647390514189e-02,
)  # fmt: skip


def tanh(x: Expr) -> Expr:
    """Beyond 10 it is 1 in float32; some drivers overflow there."""
    return apply("tanh", clamp(x, -10.0, 10.0))


def sigmoid(x: Expr) -> Expr:
    return 1 / (apply("exp", -apply("max", x, const(-80, "f32"))) + 1)


def expm1(x: Expr) -> Expr:
    """Near zero by its series: there `exp(x) - 1` would lose most digits."""
    series = x * _polynomial(x, (1 / 5040, 1 / 720, 1 / 120, 1 / 24, 1 / 6, 1 / 2, 1))
    return where(apply("abs", x) < 0.5, series, apply("exp", x) - 1)


def log1p(x: Expr) -> Expr:
    """Near zero by the series of 2 atanh(x / (2 + x))."""
    ratio = x / (x + 2)
    series = ratio * 2 * _polynomial(ratio * ratio, (1 / 9, 1 / 7, 1 / 5, 1 / 3, 1))
    return where(apply("abs", x) < 0.5, series, apply("log", x + 1))


def _compare(op: str) -> Callable[[Expr, Expr], Expr]:
    return lambda a, b: apply(op, a, b)


def _flipped(op: str) -> Callable[[Expr, Expr], Expr]:
    return lambda a, b: apply(op, b, a)


_COMPARISONS: Final[dict[str, Callable[[Expr, Expr], Expr]]] = {
    "eq": _compare("eq"), "ne": differs, "lt": _compare("lt"), "le": _compare("le"),
    "gt": _flipped("lt"), "ge": _flipped("le"),
}  # fmt: skip


def _compare_number(name: str) -> Rule:
    """Comparing with an infinity means comparing with the number that stands for it, or anything beyond."""

    def rule(call: Call) -> None:
        number = call.number("other")
        body = _COMPARISONS[name]
        if math.isinf(number) and name in ("eq", "ne"):
            beyond = "le" if number < 0 else "ge"
            body = _COMPARISONS[beyond] if name == "eq" else lambda a, b: ~_COMPARISONS[beyond](a, b)
        source = call.source("self")
        fractional = not number.is_integer() if math.isfinite(number) else True
        dtype: Scalar = "f32" if source.dtype == "f32" or fractional else "i32"
        call.define_map(call.output(), lambda *at: body(cast(source.at(*at), dtype), const(number, dtype)))

    return rule


def _bitwise(op: str) -> Callable[[Expr, Expr], Expr]:
    logic = {"bit_and": "and", "bit_or": "or"}[op]
    return lambda a, b: apply(logic if a.dtype == "bool" else op, a, b)


def _bitwise_not(x: Expr) -> Expr:
    return ~x if x.dtype == "bool" else -x - 1


def _logical(body: Callable[[Expr, Expr], Expr]) -> Callable[[Expr, Expr], Expr]:
    return lambda a, b: body(cast(a, "bool"), cast(b, "bool"))


def _remainder(a: Expr, b: Expr) -> Expr:
    """With the sign of the divisor, as in Python."""
    if a.dtype == "f32":
        return a - apply("floor", a / b) * b
    return a - _floor_quotient(a, b) * b


def _fmod(a: Expr, b: Expr) -> Expr:
    """With the sign of the dividend, as in C."""
    return a - _whole_quotient(a, b) * b


def _whole_quotient(a: Expr, b: Expr) -> Expr:
    """Rounded towards zero. Whole numbers are divided by their sizes: the rounding of negative ones differs by
    language, and what division by zero gives does too.
    """
    if a.dtype == "f32":
        return trunc(a / b)
    if b.is_const and b.value > 0 and a.low >= 0:
        return a // b
    size = apply("abs", a) // apply("max", apply("abs", b), const(1, "i32"))
    return where((a < 0).equals(b < 0), size, -size)


def _floor_quotient(a: Expr, b: Expr) -> Expr:
    if a.dtype == "f32":
        return apply("floor", a / b)
    whole = _whole_quotient(a, b)
    if b.is_const and b.value > 0 and a.low >= 0:
        return whole
    is_above = apply("ne", whole * b, a) & ~(a < 0).equals(b < 0)
    return whole - cast(is_above, "i32")


def trunc(x: Expr) -> Expr:
    return where(x < 0, apply("ceil", x), apply("floor", x))


def _div_mode(call: Call) -> None:
    """Division rounded as asked, of floats or of whole numbers."""
    quotient = {None: lambda a, b: a / b, "floor": _floor_quotient, "trunc": _whole_quotient}[
        call["rounding_mode"]
    ]
    a, b, output = call.source("self"), call.source("other"), call.output()
    call.define_map(output, lambda *at: quotient(*(cast(one.broadcast(at), output.dtype) for one in (a, b))))


def atan2(y: Expr, x: Expr) -> Expr:
    """By a polynomial in the smaller over the larger of the two sizes (minimax, 2e-7 off at most), and symmetry."""
    size_y, size_x = apply("abs", y), apply("abs", x)
    large = apply("max", apply("max", size_y, size_x), const(1e-38, "f32"))
    ratio = apply("min", size_y, size_x) / large
    square = ratio * ratio
    angle = ratio * _polynomial(square, _ATAN)
    angle = where(size_y > size_x, math.pi / 2 - angle, angle)
    angle = where(x < 0, math.pi - angle, angle)
    return where(y < 0, -angle, angle)


def _op(name: str) -> Callable[..., Expr]:
    return lambda *args: apply(name, *args)


_UNARY: Final[dict[str, Callable[[Expr], Expr]]] = {
    **{name: _op(name) for name in ("exp", "log", "sin", "cos", "sqrt", "rsqrt")},
    **{name: _op(name) for name in ("abs", "sign", "floor", "ceil", "round")},
    "neg": lambda x: -x,
    "reciprocal": lambda x: 1 / x,
    "relu": lambda x: apply("max", x, const(0, x.dtype)),
    "tanh": tanh, "sigmoid": sigmoid, "erf": erf, "expm1": expm1, "log1p": log1p,
    "_to_copy": lambda x: x,
    "bitwise_not": _bitwise_not,
    "trunc": trunc,
    "log2": lambda x: apply("log", x) * (1 / math.log(2)),
}  # fmt: skip


def _test(body: Callable[[Expr], Expr]) -> Rule:
    """A unary question whose answer has another dtype than the operand."""

    def rule(call: Call) -> None:
        source = call.source("self")
        call.define_map(call.output(), lambda *at: body(source.at(*at)))

    return rule


RULES: Final[dict[str, Rule]] = {
    **{f"aten.{name}.default": _unary(body) for name, body in _UNARY.items()},
    **{f"aten.{name}.Tensor": _binary(body) for name, body in _COMPARISONS.items()},
    **{f"aten.{name}.Scalar": _compare_number(name) for name in _COMPARISONS},
    "aten.add.Tensor": _add_like(_binary, _scaled(1)),
    "aten.add.Scalar": _add_like(_with_scalar, _scaled(1)),
    "aten.sub.Tensor": _add_like(_binary, _scaled(-1)),
    "aten.sub.Scalar": _add_like(_with_scalar, _scaled(-1)),
    "aten.rsub.Scalar": _rsub,
    "aten.mul.Tensor": _binary(lambda a, b: a & b if a.dtype == "bool" else a * b),
    "aten.mul.Scalar": _with_scalar(lambda a, b: a * b),
    "aten.div.Tensor": _div,
    "aten.div.Scalar": _with_scalar(lambda a, b: a / b),
    "aten.pow.Tensor_Scalar": _pow_number,
    "aten.pow.Tensor_Tensor": _binary(_op("pow"), right="exponent"),
    "aten.maximum.default": _binary(_op("max")),
    "aten.minimum.default": _binary(_op("min")),
    "aten.clamp.default": _clamp,
    "aten.where.self": _where,
    "aten.gelu.default": _gelu,
    "aten.logical_and.default": _binary(_logical(lambda a, b: a & b)),
    "aten.logical_or.default": _binary(_logical(lambda a, b: a | b)),
    "aten.logical_xor.default": _binary(_logical(_op("ne"))),
    "aten.logical_not.default": _test(lambda x: ~cast(x, "bool")),
    "aten.bitwise_and.Tensor": _binary(_bitwise("bit_and")),
    "aten.bitwise_or.Tensor": _binary(_bitwise("bit_or")),
    "aten.isnan.default": _test(lambda x: ~apply("eq", x, x)),
    "aten.isinf.default": _test(lambda x: apply("abs", x) >= FLOAT_MAX),
    "aten.fmod.Scalar": _with_scalar(_fmod),
    "aten.fmod.Tensor": _binary(_fmod),
    "aten.remainder.Scalar": _with_scalar(_remainder),
    "aten.remainder.Tensor": _binary(_remainder),
    "aten.div.Tensor_mode": _div_mode,
    "aten.atan2.default": _binary(atan2),
    "aten.pow.Scalar": _power_of_number,
}
