"""The parameter delta, encoded on the GPU: blocks of 8- or 4-bit steps with a scale each.

`metal_kernels/delta.py` specifies them.

What rounding loses is kept on the device, in `residual/NAME`, and added to the next delta: error feedback.
"""

from collections.abc import Mapping
from typing import Final

from metal_kernels.compiler.compile import Compilation, Role, assemble
from metal_kernels.delta import BLOCK, LARGEST, QUANTISED
from metal_kernels.ir.expr import Expr, Tensor, apply, cast, clamp, const, index_var, where
from metal_kernels.ir.loops import Definition, LoopProgram, Map, Reduce
from metal_kernels.lowering.context import Source
from metal_kernels.passes.group import group
from metal_kernels.passes.inline import inline
from metal_kernels.passes.schedule import schedule
from metal_kernels.passes.tiles import DeviceClass
from metal_kernels.program.graph import DeltaBits, Value

WORD_BITS: Final = 32


def compile_delta(
    spec: Mapping[str, Value], *, device: DeviceClass = "phone", bits: DeltaBits = 8
) -> Compilation:
    """Kernels that encode every floating tensor of `spec` in steps of `bits`.

    Inputs are `base/NAME` and `new/NAME`; results `int8/NAME` (or `int4/NAME`), four (or eight) elements a word, the
    first in the lowest bits, and `scales/NAME`; `residual/NAME` is state that starts as zeros.
    """
    loops = LoopProgram([], {}, {})
    roles: dict[str, Role] = {}
    updates: dict[str, str] = {}
    for name, value in spec.items():
        if value.dtype == "float32":
            _encode(name, value.elements, bits, loops, roles, updates)
    loops.updates = updates
    loops = inline(loops)
    return assemble(
        loops, schedule(loops, group(loops), device), roles, device=device, kind="forward", batch=1
    )


def _encode(
    name: str,
    elements: int,
    bits: DeltaBits,
    loops: LoopProgram,
    roles: dict[str, Role],
    updates: dict[str, str],
) -> None:
    """The definitions of one tensor's encoding."""
    blocks, largest, per_word = -(-elements // BLOCK), LARGEST[bits], WORD_BITS // bits
    base, new, residual = (
        Tensor(f"{kind}/{name}", "f32", (elements,)) for kind in ("base", "new", "residual")
    )
    scales = Tensor(f"scales/{name}", "f32", (blocks,))
    words = Tensor(QUANTISED[bits] + name, "u32", (blocks * BLOCK // per_word,))
    left = Tensor(f"{residual.name}.new", "f32", (elements,))

    def difference(flat: Expr) -> Expr:
        return Source(new).padded(flat) - Source(base).padded(flat) + Source(residual).padded(flat)

    def step(flat: Expr) -> Expr:
        """The element in units of its block's scale, a whole number."""
        scale = Source(scales).at(flat // BLOCK)
        units = where(scale > 0, difference(flat) / scale, 0.0)
        return clamp(apply("round", units), -largest, largest)

    block, offset = index_var("i0", blocks), index_var("i1", BLOCK)
    size = apply("abs", difference(block * BLOCK + offset)) / largest
    word, element = index_var("i0", words.elements), index_var("i0", elements)
    definitions: list[Definition] = [
        Reduce(scales, (block, offset), (blocks, BLOCK), (1,), "max", size),
        Map(words, (word,), _packed([step(word * per_word + place) for place in range(per_word)])),
        Map(left, (element,), difference(element) - step(element) * Source(scales).at(element // BLOCK)),
    ]
    loops.definitions.extend(definitions)
    loops.inputs.update({tensor.name: tensor for tensor in (base, new, residual)})
    loops.outputs.update({tensor.name: tensor for tensor in (scales, words, left)})
    updates[residual.name] = left.name
    roles.update({tensor.name: ("input", tensor.name) for tensor in (base, new)})
    roles.update({tensor.name: ("result", tensor.name) for tensor in (scales, words)})
    roles[residual.name], roles[left.name] = ("state", residual.name), ("scratch", "")


def _packed(steps: list[Expr]) -> Expr:
    """Signed steps of equal width in one word."""
    bits, total = WORD_BITS // len(steps), const(0, "u32")
    for position, value in enumerate(steps):
        part = apply("bit_and", cast(cast(value, "i32"), "u32"), const((1 << bits) - 1, "u32"))
        total = apply("bit_or", total, part * const(1 << (bits * position), "u32"))
    return total
