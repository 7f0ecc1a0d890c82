"""MSL, the language of Metal: native apps on iOS, and Macs through `torch.mps.compile_shader`."""

from typing import Final

from metal_kernels.ir.kernel import (
    SIMDGROUP_NAME,
    Buffer,
    Kernel,
    MatrixLoad,
    MatrixMultiply,
    MatrixStore,
    MatrixZero,
)
from metal_kernels.ir.scalars import Scalar
from metal_kernels.render.base import COMMON_OPERATIONS, Dialect, uniform_fields, used_places


def _head(kernel: Kernel) -> list[str]:
    lines = ["#include <metal_stdlib>", "using namespace metal;"]
    parameters = [_parameter(position, buffer) for position, buffer in enumerate(kernel.buffers)]
    if kernel.uniforms:
        fields = " ".join(f"{_TYPES[dtype]} {name};" for name, dtype in uniform_fields(kernel))
        lines.append(f"struct Uniforms {{ {fields} }};")
        parameters.append(f"constant Uniforms& uniforms [[buffer({len(kernel.buffers)})]]")
    parameters += [
        "uint3 group [[threadgroup_position_in_grid]]",
        "uint index [[thread_index_in_threadgroup]]",
    ]
    places = used_places(kernel)
    if SIMDGROUP_NAME in places:
        parameters.append("uint part [[simdgroup_index_in_threadgroup]]")
    lines.append(f"kernel void {kernel.name}({', '.join(parameters)}) {{")
    lines += [
        f"  threadgroup {_TYPES[shared.dtype]} {shared.name}[{shared.elements}];" for shared in kernel.shared
    ]
    return lines + [f"  const int {place} = int({_PLACES[place]});" for place in places]


def _parameter(position: int, buffer: Buffer) -> str:
    types = _VECTOR_TYPES if buffer.vector else _TYPES
    const = "const " if buffer.access == "read" else ""
    return f"device {const}{types[buffer.dtype]}* {buffer.name} [[buffer({position})]]"


_TYPES: Final[dict[Scalar, str]] = {"f32": "float", "i32": "int", "u32": "uint", "bool": "bool"}
_VECTOR_TYPES: Final[dict[Scalar, str]] = {"f32": "float4", "i32": "int4", "u32": "uint4"}
_PLACES: Final = {
    "group_x": "group.x",
    "group_y": "group.y",
    "group_z": "group.z",
    "lane": "index",
    "simdgroup": "part",
}

MSL: Final = Dialect(
    name="msl",
    types=_TYPES,
    vector_types=_VECTOR_TYPES,
    operations={
        **COMMON_OPERATIONS,
        "where": "({0} ? {1} : {2})",
        "rsqrt": "rsqrt({0})",
        "round": "rint({0})",
        "shift_right": "({0} >> {1})",
        "to_f32": "float({0})",
        "to_i32": "int({0})",
        "to_u32": "uint({0})",
    },
    let="const {type} {name} = {value};",
    declare="{type} {name} = {value};",
    loop="for (int {name} = {start}; {name} < {stop}; {name} += {step}) {{",
    barriers={
        "workgroup": "threadgroup_barrier(mem_flags::mem_threadgroup);",
        "simdgroup": "simdgroup_barrier(mem_flags::mem_threadgroup);",
    },
    head=_head,
    matrices={
        MatrixZero: "simdgroup_float8x8 {matrix} = make_filled_simdgroup_matrix<float, 8>(0.0f);",
        MatrixLoad: (
            "simdgroup_float8x8 {matrix}; "
            "simdgroup_load({matrix}, &{shared}[{index}], {stride}, ulong2(0, 0), {transposed});"
        ),
        MatrixMultiply: "simdgroup_multiply_accumulate({total}, {left}, {right}, {total});",
        MatrixStore: "simdgroup_store({matrix}, &{shared}[{index}], {stride});",
    },
)
