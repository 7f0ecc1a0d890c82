"""Program files that nobody should run: one real file, and what can be done to it.

Python and the browser read the same files and give the same verdict: a stable code, or None where the file is as good
as before. Where only the nodes' operations are wrong, a browser does not care: it runs kernels, never nodes.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, TypeAlias

import torch
from torch import Tensor, nn

from metal_kernels.compiler.compile import compile_program
from metal_kernels.compiler.compiled import CompiledKernel
from metal_kernels.compiler.delta import compile_delta
from metal_kernels.compiler.format import compiled_dumps
from metal_kernels.frontend.capture import capture_training_step
from metal_kernels.frontend.optimizers import Sgd
from metal_kernels.tensorfile import tensorfile_dumps, tensorfile_loads

FORMAT: Final = "program_format"
LARGE: Final = "program_too_large"
REFERENCE: Final = "program_bad_reference"
SPEC: Final = "program_spec_mismatch"

BATCH: Final = 4
DEVICE: Final = "cpu"


class Small(nn.Module):
    """All kinds of buffers: parameters, a constant, and optimizer slots beside them."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 5)
        self.register_buffer("offsets", torch.linspace(-1, 1, 5), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layer(x) + self.offsets
        return y


@cache
def sound_file() -> bytes:
    torch.manual_seed(0)
    program = capture_training_step(
        Small(),
        loss="cross_entropy",
        optimizer=Sgd(momentum=0.9),
        example_inputs=[torch.zeros(BATCH, 6)],
        example_target=torch.zeros(BATCH, dtype=torch.int64),
    )
    program = replace(program, delta_bits=4)
    compiled = compile_program(program, device=DEVICE).compiled
    delta = compile_delta(program.model_spec, device=DEVICE, bits=4).compiled
    return compiled_dumps(program, {DEVICE: compiled}, {DEVICE: delta})


Change: TypeAlias = Callable[[bytes], bytes]


@dataclass(frozen=True)
class Hostile:
    """`code` is the error's; None for a file that is fine all the same."""

    name: str
    change: Change
    code: str | None

    @property
    def file(self) -> bytes:
        return self.change(sound_file())


# Ways to change a file.


def _cut(place: int) -> Change:
    return lambda file: file[:place]


def _cut_part(part: int, parts: int) -> Change:
    return lambda file: file[: len(file) * part // parts]


def _claimed(header_bytes: int) -> Change:
    return lambda file: header_bytes.to_bytes(8, "little") + file[8:]


def _header_and_body(file: bytes) -> tuple[bytes, bytes]:
    """Its header's text, and what follows."""
    end = 8 + int.from_bytes(file[:8], "little")
    return file[8:end], file[end:]


def _with_header(header: bytes, body: bytes) -> bytes:
    return len(header).to_bytes(8, "little") + header + body


def _header(change: Callable[[dict[str, Any]], object]) -> Change:
    def changed(file: bytes) -> bytes:
        header, body = _header_and_body(file)
        content = json.loads(header)
        change(content)
        return _with_header(json.dumps(content).encode(), body)

    return changed


def _constant(change: Callable[[dict[str, Any], dict[str, Any]], object]) -> Change:
    """The header's entry of the one constant, changed."""
    return _header(
        lambda header: change(header, next(one for name, one in header.items() if name != "__metadata__"))
    )


def _changed_entry(values: dict[str, Any]) -> Callable[[dict[str, Any], dict[str, Any]], object]:
    return lambda header, entry: entry.update(values)


def _named(*names: str) -> Callable[[dict[str, Any], dict[str, Any]], object]:
    """The constant under these names instead."""

    def change(header: dict[str, Any], entry: dict[str, Any]) -> None:
        metadata = header["__metadata__"]
        header.clear()
        header.update({"__metadata__": metadata, **dict.fromkeys(names, entry)})

    return change


def _header_text(change: Change) -> Change:
    def changed(file: bytes) -> bytes:
        header, body = _header_and_body(file)
        return _with_header(change(header), body)

    return changed


def _metadata(**values: str | None) -> Change:
    def changed(file: bytes) -> bytes:
        parts = tensorfile_loads(file)
        metadata = {**parts.metadata, **values}
        kept = {key: value for key, value in metadata.items() if value is not None}
        return tensorfile_dumps(parts.tensors, metadata=kept)

    return changed


def _entry(name: str, change: Callable[[Any], object]) -> Change:
    def changed(file: bytes) -> bytes:
        content = json.loads(tensorfile_loads(file).metadata[name])
        change(content)
        return _metadata(**{name: json.dumps(content)})(file)

    return changed


def _entry_text(name: str, old: str, new: str) -> Change:
    def changed(file: bytes) -> bytes:
        text = tensorfile_loads(file).metadata[name]
        assert old in text
        return _metadata(**{name: text.replace(old, new, 1)})(file)

    return changed


def _graph(change: Callable[[dict[str, Any]], object]) -> Change:
    return _entry("graph", change)


def _kernels(change: Callable[[dict[str, Any]], object]) -> Change:
    return _entry(f"compiled.{DEVICE}", change)


def _delta(change: Callable[[dict[str, Any]], object]) -> Change:
    return _entry(f"delta.{DEVICE}", change)


def _with(**values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda content: content.update(values)


def _first(part: str, **values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda content: content[part][0].update(values)


def _buffer(which: str, **values: Any) -> Callable[[dict[str, Any]], object]:
    """The first buffer of a role, changed."""

    def change(content: dict[str, Any]) -> None:
        next(buffer for buffer in content["buffers"] if buffer["role"] == which).update(values)

    return change


def _input(role: str, **values: Any) -> Callable[[dict[str, Any]], object]:
    """The value of the first input of a role, changed."""

    def change(content: dict[str, Any]) -> None:
        next(entry for entry in content["inputs"] if entry["role"] == role)["value"].update(values)

    return change


def _twice(part: str) -> Callable[[dict[str, Any]], object]:
    return lambda content: content[part].append(content[part][0])


def _without(part: str, role: str) -> Callable[[dict[str, Any]], object]:
    """Buffers of a role gone, and what uses them."""

    def change(content: dict[str, Any]) -> None:
        places = {place for place, one in enumerate(content[part]) if one["role"] == role}
        content[part] = [one for place, one in enumerate(content[part]) if place not in places]
        content["dispatches"], content["copies"] = [], []

    return change


def _bound_twice(content: dict[str, Any]) -> None:
    """The first dispatch whose kernel writes one of several buffers binds that one for all."""
    for dispatch in content["dispatches"]:
        kernel = content["kernels"][dispatch["kernel"]]
        if len(kernel["writes"]) > 1:
            kernel["elements"] = [0] * len(kernel["writes"])
            dispatch["buffers"] = [dispatch["buffers"][kernel["writes"].index(True)]] * len(kernel["writes"])
            return
    raise AssertionError("no kernel has two buffers")


def _nested(depth: int) -> str:
    return "[" * depth + "]" * depth


_Case: TypeAlias = tuple[str, Change, str | None]


def _cases() -> Iterator[_Case]:
    yield "as it was", lambda file: file, None
    yield from _damaged_bytes()
    yield from _damaged_headers()
    yield from _damaged_graphs()
    yield from _damaged_kernels()
    yield from _damaged_deltas()


def _damaged_bytes() -> Iterator[_Case]:
    for place in (*range(12), 100, -1):
        yield f"cut at byte {place}", _cut(place), FORMAT
    for part in range(1, 40):
        yield f"cut after {part} of 40 parts", _cut_part(part, 40), FORMAT
    yield "a byte too many", lambda file: file + b"\0", FORMAT
    yield "twice", lambda file: file * 2, FORMAT
    for claimed in (0, 1, 2**32, 2**53, 2**64 - 1):
        yield f"a header of {claimed} bytes", _claimed(claimed), FORMAT


def _damaged_headers() -> Iterator[_Case]:
    entries: dict[str, dict[str, Any]] = {
        "a shape of 2^53": {"shape": [2**53]},
        "a shape whose product is beyond 2^64": {"shape": [2**40, 2**40]},
        "a negative shape": {"shape": [-5]},
        "a shape of text": {"shape": ["5"]},
        "a shape of 17 dimensions": {"shape": [5] + [1] * 16},
        "a negative place": {"data_offsets": [-4, 16]},
        "a place beyond the end": {"data_offsets": [0, 2**53 - 1]},
        "an unknown dtype": {"dtype": "F64"},
        "a dtype that objects have": {"dtype": "constructor"},
        "an unknown field of a tensor": {"unknown": 1},
    }
    for name, values in entries.items():
        yield name, _constant(_changed_entry(values)), FORMAT
    yield "a constant gone", _constant(_named()), FORMAT
    yield "a constant of another name", _constant(_named("other")), FORMAT
    yield "a constant called __proto__", _constant(_named("__proto__")), FORMAT
    yield "a constant under two names", _constant(_named("c0", "c1")), FORMAT
    yield "a number as metadata", _header(lambda header: header["__metadata__"].update(x=1)), FORMAT
    yield "no metadata", _header(lambda header: header.pop("__metadata__")), FORMAT
    yield "more metadata", _metadata(unknown="text"), None
    yield "a list as header", _header_text(lambda header: b"[" + header + b"]"), FORMAT
    yield "NaN in the header", _header_text(lambda header: header.replace(b"[5]", b"[NaN]", 1)), FORMAT
    yield "a name given twice", _header_text(lambda h: b'{"x":1,"x":1,' + h[1:]), FORMAT
    yield "deep nesting in the header", _header_text(_deep), FORMAT
    yield "a header of blanks", _header_text(lambda header: b" " * 2**20), FORMAT
    yield (
        "a header with a mark of its encoding",
        _header_text(lambda header: b"\xef\xbb\xbf" + header),
        FORMAT,
    )
    yield "a header in UTF-16", _header_text(lambda header: header.decode().encode("utf-16")), FORMAT
    yield "a header with half a character", _header_text(lambda h: b'{"\xed\xa0\x80":1,' + h[1:]), FORMAT
    yield "another format", _metadata(format="nightshift.delta"), FORMAT
    yield "another version", _metadata(version="2"), FORMAT
    yield "no graph", _metadata(graph=None), FORMAT
    yield "no kernels for the device", _metadata(**{f"compiled.{DEVICE}": None}), FORMAT
    yield "no kernels for the delta", _metadata(**{f"delta.{DEVICE}": None}), None
    yield "deltas of 3 bits", _metadata(delta_bits="3"), FORMAT
    yield "deltas of other bits than their kernels", _metadata(delta_bits=None), REFERENCE


def _deep(header: bytes) -> bytes:
    return b'{"x":' + _nested(50_000).encode() + b"," + header[1:]


def _damaged_graphs() -> Iterator[_Case]:
    yield "a graph that is no JSON", _metadata(graph="{"), FORMAT
    yield "a graph of nothing but nesting", _metadata(graph=_nested(100_000)), FORMAT
    yield "a graph with an unknown field", _graph(_with(code="import os")), FORMAT
    yield "a graph without nodes", _graph(lambda graph: graph.pop("nodes")), FORMAT
    yield "nodes that are no list", _graph(_with(nodes=5)), FORMAT
    yield "a node with an unknown field", _graph(_first("nodes", code="import os")), FORMAT
    yield "a node's argument nested deeply", _graph_with_deep_argument, FORMAT
    yield "an input of no known role", _graph(_first("inputs", role="secret")), FORMAT
    yield "an input given twice", _graph(_twice("inputs")), REFERENCE
    yield "a name that two values have", _graph(_input("target", name="in0")), REFERENCE
    yield "an output given twice", _graph(_twice("outputs")), REFERENCE
    yield "an output that no node makes", _graph(_first("outputs", value="nowhere")), REFERENCE
    yield "no outputs", _graph(_with(outputs=[])), FORMAT
    yield "an empty name", _graph(_input("parameter", name="")), LARGE
    yield "a name of a thousand characters", _graph(_input("parameter", name="x" * 1000)), LARGE
    yield "half a character as a key", _graph(_first("inputs", key="\ud800")), FORMAT
    for name, shape, code in [
        ("of 2^53", [2**53], FORMAT),
        ("of 2^53 - 1", [2**53 - 1], LARGE),
        ("that is negative twice", [-5, -6], SPEC),
        ("with a zero", [5, 0], SPEC),
        ("of nine dimensions", [5, 6] + [1] * 7, LARGE),
        ("with half an element", [5.5, 6], FORMAT),
        ("with a flag", [True, 6], FORMAT),
        ("with a text", ["5", 6], FORMAT),
    ]:
        yield f"a parameter's shape {name}", _graph(_input("parameter", shape=shape)), code
    yield "NaN in a shape", _entry_text("graph", "[5,6]", "[NaN,6]"), FORMAT
    yield "infinity in a shape", _entry_text("graph", "[5,6]", "[1e999,6]"), FORMAT
    yield "a constant of another shape", _graph(lambda g: g["constants"][0].update(shape=[7])), SPEC
    yield "a constant of another dtype", _graph(lambda g: g["constants"][0].update(dtype="int32")), SPEC
    yield "a learning rate that is a list", _graph(_input("scalar", shape=[1])), REFERENCE


def _graph_with_deep_argument(file: bytes) -> bytes:
    text = tensorfile_loads(file).metadata["graph"]
    return _metadata(graph=text.replace('"nodes":[', f'"nodes":[{{"args":{_nested(50_000)}}},', 1))(file)


def _damaged_kernels() -> Iterator[_Case]:
    kernels: list[tuple[str, dict[str, Any], str]] = [
        ("100,000 lanes", {"lanes": 100_000}, LARGE),
        ("2^53 lanes", {"lanes": 2**53}, FORMAT),
        ("-1 lanes", {"lanes": -1}, LARGE),
        ("lanes of text", {"lanes": "64"}, FORMAT),
        ("half a lane", {"lanes": 0.5}, FORMAT),
        ("a grid with a zero", {"groups": [0, 1, 1]}, LARGE),
        ("a grid of two sides", {"groups": [1, 1]}, FORMAT),
        ("a grid past what a side may have", {"groups": [65_536, 1, 1]}, LARGE),
        ("a grid past what all sides may have", {"groups": [65_535, 65_535, 65_535]}, LARGE),
        ("nine buffers", {"writes": [False] * 9, "elements": [1] * 9}, LARGE),
        ("fewer sizes than buffers", {"elements": []}, LARGE),
        ("a negative size", {"elements_of_all": -1}, FORMAT),
        ("a size of 2^53", {"elements_of_all": 2**53}, FORMAT),
        ("a size of 2^53 - 1", {"elements_of_all": 2**53 - 1}, SPEC),
        ("no time", {"estimated_us": 0}, FORMAT),
        ("negative time", {"estimated_us": -(2**40)}, FORMAT),
        ("the name of a command", {"name": "system('rm')"}, FORMAT),
        ("a name and a line's end", {"name": "map_0123456789ab\n"}, FORMAT),
        ("a source that is too long", {"wgsl": "x" * 300_000}, LARGE),
        ("no source", {"wgsl": None}, FORMAT),
        ("an unknown field", {"unknown": 1}, FORMAT),
    ]
    for name, values, code in kernels:
        yield f"a kernel with {name}", _kernels(_kernel(values)), code
    yield "kernels that are no JSON", _metadata(**{f"compiled.{DEVICE}": "{"}), FORMAT
    yield "kernels of nothing but nesting", _metadata(**{f"compiled.{DEVICE}": _nested(100_000)}), FORMAT
    yield "NaN as the batch", _entry_text(f"compiled.{DEVICE}", f'"batch":{BATCH}', '"batch":NaN'), FORMAT
    for batch in (0, -1, BATCH + 1, 2**53 - 1):
        yield f"a batch of {batch}", _kernels(_with(batch=batch)), FORMAT
    yield "kernels of another kind", _kernels(_with(kind="forward")), FORMAT
    yield "kernels without copies", _kernels(lambda content: content.pop("copies")), FORMAT
    yield "too many dispatches", _kernels(lambda c: c.update(dispatches=c["dispatches"][:1] * 20_001)), LARGE
    dispatches: list[tuple[str, dict[str, Any], str]] = [
        ("no kernel", {"kernel": 999}, REFERENCE),
        ("a kernel before the first", {"kernel": -1}, REFERENCE),
        ("too few buffers", {"buffers": []}, SPEC),
        ("a text as buffers", {"buffers": "01"}, FORMAT),
    ]
    for name, values, code in dispatches:
        yield f"a dispatch of {name}", _kernels(_first("dispatches", **values)), code
    for place in (999, -1):
        yield f"a dispatch of the buffer {place}", _kernels(_all_bound_to(place)), REFERENCE
    yield "a dispatch that writes a buffer bound twice", _kernels(_bound_twice), SPEC
    buffers: list[tuple[str, str, dict[str, Any], str]] = [
        ("no role", "state", {"role": "secret"}, FORMAT),
        ("state that the program lacks", "state", {"key": "nowhere"}, REFERENCE),
        ("a result that nobody asked for", "scratch", {"role": "result", "key": "secret"}, REFERENCE),
        ("state of another size", "state", {"elements": 31}, SPEC),
        ("state of another dtype", "state", {"dtype": "i32"}, SPEC),
        ("flags", "scratch", {"dtype": "bool"}, FORMAT),
        ("data of another size", "data", {"elements": 7}, SPEC),
        ("a constant of another size", "constant", {"elements": 6}, SPEC),
        ("losses of another dtype", "losses", {"dtype": "i32"}, SPEC),
        ("an order of two", "order", {"elements": 2}, SPEC),
        ("an order of a name", "order", {"key": "mine"}, REFERENCE),
        ("no elements", "scratch", {"elements": 0}, LARGE),
        ("a negative number of elements", "scratch", {"elements": -4}, LARGE),
        ("2^40 elements", "scratch", {"elements": 2**40}, LARGE),
        ("2^53 elements", "scratch", {"elements": 2**53}, FORMAT),
    ]
    for name, role, values, code in buffers:
        yield f"a buffer of {name}", _kernels(_buffer(role, **values)), code
    yield "scratch that is too small", _kernels(_small_scratch), SPEC
    yield "a buffer twice", _kernels(_twice("buffers")), REFERENCE
    yield "no buffer for losses", _kernels(_without("buffers", "losses")), REFERENCE
    for copy, code in [([0, 999], REFERENCE), ([-1, 0], REFERENCE), ([0, 0], SPEC), ([0], FORMAT)]:
        yield f"a copy {copy}", _kernels(_with(copies=[copy])), code
    yield "a copy that reads past the end", _kernels(_long_copy), SPEC


def _kernel(values: dict[str, Any]) -> Callable[[dict[str, Any]], object]:
    def change(content: dict[str, Any]) -> None:
        kernel = content["kernels"][0]
        changes = dict(values)
        if "elements_of_all" in changes:
            changes["elements"] = [changes.pop("elements_of_all")] * len(kernel["elements"])
        kernel.update(changes)

    return change


def _all_bound_to(place: int) -> Callable[[dict[str, Any]], object]:
    def change(content: dict[str, Any]) -> None:
        dispatch = content["dispatches"][0]
        dispatch["buffers"] = [place] * len(dispatch["buffers"])

    return change


def _small_scratch(content: dict[str, Any]) -> None:
    for buffer in content["buffers"]:
        if buffer["role"] == "scratch":
            buffer["elements"] = 1


def _long_copy(content: dict[str, Any]) -> None:
    sizes = [buffer["elements"] for buffer in content["buffers"]]
    content["copies"] = [[sizes.index(min(sizes)), sizes.index(max(sizes))]]


def _damaged_deltas() -> Iterator[_Case]:
    yield "delta kernels that are no JSON", _metadata(**{f"delta.{DEVICE}": "x"}), FORMAT
    yield "the step's kernels as the delta's", _swapped, FORMAT
    yield "delta kernels for a batch", _delta(_with(batch=2)), FORMAT
    yield "a delta without scales", _delta(_without("buffers", "result")), REFERENCE
    yield "a delta of a stranger", _delta(_buffer("input", key="base/stranger")), REFERENCE
    yield "a delta with few results", _delta(_buffer("result", elements=2)), SPEC
    yield "a delta with results of another dtype", _delta(_buffer("result", dtype="i32")), SPEC
    yield "a delta with 512 lanes", _delta(_first("kernels", lanes=512)), LARGE


def _swapped(file: bytes) -> bytes:
    metadata = tensorfile_loads(file).metadata
    return _metadata(**{f"delta.{DEVICE}": metadata[f"compiled.{DEVICE}"]})(file)


HOSTILE: Final = {name: Hostile(name, change, code) for name, change, code in _cases()}


STRAY: Final = CompiledKernel(
    name="map_0123456789ab",
    lanes=64,
    groups=(1, 1, 1),
    writes=[False, True],
    elements=[64, 64],
    uses_uniforms=False,
    estimated_us=1,
    wgsl="""
@group(0) @binding(0) var<storage, read> b0: array<f32>;
@group(0) @binding(1) var<storage, read_write> b1: array<f32>;
@compute @workgroup_size(64)
fn map_0123456789ab(@builtin(local_invocation_index) index: u32) {
  for (var far: u32 = 64u; far < 1000000u; far = far + 64u) {
    b1[index] = max(b1[index], b0[index + far]);
    b1[index + far] = 7.0;
  }
  b1[index] = max(b1[index], b0[i32(index) - 1000000]);
}
""",
    msl="",
    msl_matrices="",
)
"""A kernel that touches what lies beyond its two buffers of 64 elements. No file's check reads WGSL: WebGPU stops it,
where an index that is outside comes to nothing or to some element of the same buffer."""
