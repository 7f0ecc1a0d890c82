"""A compiled program that is wrong is a typed error in the browser, with the code that Python gives it."""

import hashlib
import json
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest

from metal_kernels.compiler.format import compiled_loads
from metal_kernels.errors import ProgramError
from metal_kernels.tensorfile import tensorfile_dumps, tensorfile_loads
from tests.browser.conftest import Page
from tests.browser.shards import Shard

pytestmark = pytest.mark.browser

Change = Callable[[dict[str, Any]], None]


@pytest.fixture
def file(page: Page, mlp: Shard) -> bytes:
    return (page.files / f"{mlp.name}.program").read_bytes()


def loaded(page: Page, file: bytes, *arguments: str) -> dict[str, Any]:
    answer: dict[str, Any] = page.call("loaded", b64encode(file).decode(), *(arguments or ("cpu",)))
    return answer


def code_in_python(file: bytes) -> str:
    with pytest.raises(ProgramError) as refusal:
        compiled_loads(file, "cpu")
    return refusal.value.code


def changed(file: bytes, change: Change, *, entry: str = "compiled.cpu") -> bytes:
    parts = tensorfile_loads(file)
    content = json.loads(parts.metadata[entry])
    change(content)
    return tensorfile_dumps(parts.tensors, metadata={**parts.metadata, entry: json.dumps(content)})


def test_a_whole_file_loads(page: Page, file: bytes) -> None:
    _, compiled = compiled_loads(file, "cpu")
    counts = {"kernels": len(compiled.kernels), "dispatches": len(compiled.dispatches)}
    assert loaded(page, file, "cpu", hashlib.sha256(file).hexdigest())["value"] == counts


def test_a_wrong_hash_is_refused(page: Page, file: bytes) -> None:
    assert loaded(page, file, "cpu", "0" * 64)["error"]["code"] == "program_hash"


def test_a_missing_variant_is_named(page: Page, file: bytes) -> None:
    error = loaded(page, file, "desktop")["error"]
    assert error["code"] == "program_format"
    assert "'desktop'" in error["message"]


@pytest.mark.parametrize("length", [0, 7, 100, -1])
def test_a_file_cut_short_is_refused_as_in_python(page: Page, file: bytes, length: int) -> None:
    assert loaded(page, file[:length])["error"]["code"] == code_in_python(file[:length])


def first(part: str, **values: Any) -> Change:
    return lambda compiled: compiled[part][0].update(values)


def every_scratch(elements: int) -> Change:
    def change(compiled: dict[str, Any]) -> None:
        for buffer in compiled["buffers"]:
            if buffer["role"] == "scratch":
                buffer["elements"] = elements

    return change


@pytest.mark.parametrize(
    "change",
    [
        first("kernels", lanes=100_000),
        first("kernels", lanes="64"),
        first("kernels", groups=[0, 1, 1]),
        first("kernels", groups=[1, 1]),
        first("kernels", writes=[False] * 9, elements=[1] * 9),
        first("kernels", name="system('rm')"),
        first("kernels", wgsl="x" * 300_000),
        first("kernels", unknown=1),
        first("dispatches", kernel=999),
        first("dispatches", kernel=-1),
        first("dispatches", buffers=[0]),
        first("dispatches", buffers=[999, 999, 999]),
        first("buffers", role="secret"),
        first("buffers", role="state", key="nowhere"),
        every_scratch(1),
        every_scratch(2**40),
        lambda compiled: compiled.update(copies=[[0, 999]]),
        lambda compiled: compiled.update(kind="forward"),
        lambda compiled: compiled.update(batch=0),
        lambda compiled: compiled.pop("copies"),
    ],
)
def test_kernels_that_are_wrong_are_refused_as_in_python(page: Page, file: bytes, change: Change) -> None:
    damaged = changed(file, change)
    assert loaded(page, damaged)["error"]["code"] == code_in_python(damaged)


def test_a_graph_that_is_wrong_is_refused(page: Page, file: bytes) -> None:
    damaged = changed(file, lambda graph: graph["inputs"][0].pop("role"), entry="graph")
    assert loaded(page, damaged)["error"]["code"] == code_in_python(damaged)


def test_a_kernel_that_does_not_compile_is_named(page: Page, mlp: Shard, file: bytes) -> None:
    _, compiled = compiled_loads(file, "cpu")
    error = page.call("brokenKernel", mlp.name, "fn nothing() {")["error"]
    assert (error["code"], error["field"]) == ("program_format", compiled.kernels[0].name)
