"""Random numbers from a counter (see `program/random.py`), in 32-bit arithmetic alone."""

from typing import Final

from metal_kernels.ir.expr import Expr, apply, cast, const, flatten, where
from metal_kernels.lowering.context import Call, Rule
from metal_kernels.program.random import KEY_STEPS, MANTISSA_BITS, MULTIPLIERS, ROUNDS, WORDS_PER_BLOCK

Words = tuple[Expr, Expr, Expr, Expr]


def philox(counter: Words, key: tuple[Expr, Expr]) -> Words:
    """Philox 4x32-10."""
    for turn in range(ROUNDS):
        if turn:
            key = (key[0] + KEY_STEPS[0], key[1] + KEY_STEPS[1])
        high_0, low_0 = _product(MULTIPLIERS[0], counter[0])
        high_1, low_1 = _product(MULTIPLIERS[1], counter[2])
        counter = (_xor(high_1, counter[1], key[0]), low_1, _xor(high_0, counter[3], key[1]), low_0)
    return counter


def _product(factor: int, word: Expr) -> tuple[Expr, Expr]:
    """The upper and the lower word of a product: WGSL has no wide one, so it is put together from 16-bit halves."""
    factor_high, factor_low = (const(half, "u32") for half in (factor >> 16, factor & 0xFFFF))
    high, low = _upper(word), _lower(word)
    middle = high * factor_low + _upper(low * factor_low)
    carry = _lower(middle) + low * factor_high
    return high * factor_high + _upper(middle) + _upper(carry), word * const(factor, "u32")


def _upper(word: Expr) -> Expr:
    return apply("shift_right", word, const(16, "u32"))


def _lower(word: Expr) -> Expr:
    return apply("bit_and", word, const(0xFFFF, "u32"))


def _xor(*words: Expr) -> Expr:
    first, *rest = words
    for word in rest:
        first = apply("bit_xor", first, word)
    return first


def _random_uniform(call: Call) -> None:
    output = call.output()
    key = [cast(call.source(name).at(), "u32") for name in ("seed_low", "seed_high")]
    step, stream = cast(call.source("step").at(), "u32"), const(call["stream"], "u32")

    def body(*at: Expr) -> Expr:
        element = flatten(at, output.shape)
        block, place = element // WORDS_PER_BLOCK, element % WORDS_PER_BLOCK
        words = philox((cast(block, "u32"), step, stream, const(0, "u32")), (key[0], key[1]))
        word = words[0]
        for position in range(1, WORDS_PER_BLOCK):
            word = where(place.equals(position), words[position], word)
        bits = apply("shift_right", word, const(32 - MANTISSA_BITS, "u32"))
        return cast(bits, "f32") * 2.0**-MANTISSA_BITS

    call.define_map(output, body)


RULES: Final[dict[str, Rule]] = {"nightshift.random_uniform.default": _random_uniform}
