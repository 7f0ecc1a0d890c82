"""WGSL, the language of WebGPU: Safari and Chrome on phones, wgpu in Python."""

from typing import Final

from metal_kernels.ir.kernel import Buffer, Kernel
from metal_kernels.render.base import COMMON_OPERATIONS, Dialect, uniform_fields, used_places

UNIFORM_GROUP: Final = 1
"""Buffers are bound in group 0; the record of the step in group 1, where one offset moves it from step to step."""


def _head(kernel: Kernel) -> list[str]:
    lines = [_binding(position, buffer) for position, buffer in enumerate(kernel.buffers)]
    if kernel.uniforms:
        fields = ", ".join(f"{name}: {dtype}" for name, dtype in uniform_fields(kernel))
        lines.append(f"struct Uniforms {{ {fields} }}")
        lines.append(f"@group({UNIFORM_GROUP}) @binding(0) var<uniform> uniforms: Uniforms;")
    lines += [
        f"var<workgroup> {shared.name}: array<{shared.dtype}, {shared.elements}>;" for shared in kernel.shared
    ]
    lines += [
        f"@compute @workgroup_size({kernel.lanes})",
        f"fn {kernel.name}(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {{",
    ]
    return lines + [f"  let {place} = i32({_PLACES[place]});" for place in used_places(kernel)]


def _binding(position: int, buffer: Buffer) -> str:
    access = "read" if buffer.access == "read" else "read_write"
    element, width = (f"vec4<{buffer.dtype}>", 4) if buffer.vector else (buffer.dtype, 1)
    # A length that the compiler knows costs nothing where a browser checks indices.
    length = f", {buffer.elements // width}" if buffer.elements else ""
    return f"@group(0) @binding({position}) var<storage, {access}> {buffer.name}: array<{element}{length}>;"


_PLACES: Final = {"group_x": "group.x", "group_y": "group.y", "group_z": "group.z", "lane": "index"}

WGSL: Final = Dialect(
    name="wgsl",
    types={"f32": "f32", "i32": "i32", "u32": "u32", "bool": "bool"},
    vector_types={"f32": "vec4<f32>", "i32": "vec4<i32>", "u32": "vec4<u32>"},
    operations={
        **COMMON_OPERATIONS,
        "where": "select({2}, {1}, {0})",
        "rsqrt": "inverseSqrt({0})",
        "round": "round({0})",
        "shift_right": "({0} >> u32({1}))",
        "to_f32": "f32({0})",
        "to_i32": "i32({0})",
        "to_u32": "u32({0})",
    },
    let="let {name} = {value};",
    declare="var {name}: {type} = {value};",
    loop="for (var {name}: i32 = {start}; {name} < {stop}; {name} += {step}) {{",
    barriers={"workgroup": "workgroupBarrier();"},
    head=_head,
)
