"""A compiled program that is wrong is a typed error in the browser, with the code that Python gives it."""

import hashlib
import random
from base64 import b64encode
from typing import Any

import msgspec
import pytest

from metal_kernels.compiler.format import compiled_loads, delta_loads
from metal_kernels.errors import ProgramError
from tests.browser.conftest import Page
from tests.browser.shards import Shard
from tests.metal_kernels.hostile import DEVICE, HOSTILE, STRAY, sound_file

pytestmark = pytest.mark.browser


@pytest.fixture
def file(page: Page, mlp: Shard) -> bytes:
    return (page.files / f"{mlp.name}.program").read_bytes()


def loaded(page: Page, file: bytes, *arguments: str) -> dict[str, Any]:
    answer: dict[str, Any] = page.call("loaded", b64encode(file).decode(), *(arguments or ("cpu",)))
    return answer


def is_refused_by_python(file: bytes) -> bool:
    try:
        compiled_loads(file, DEVICE)
        delta_loads(file, DEVICE)
    except ProgramError:
        return True
    return False


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


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_that_is_wrong_is_refused_with_the_code_that_python_gives_it(page: Page, name: str) -> None:
    answer = loaded(page, HOSTILE[name].file)
    assert answer.get("error", {}).get("code") == HOSTILE[name].code


def test_a_flipped_byte_is_refused_here_only_if_python_refuses_it(page: Page) -> None:
    """And the other way round, where it is not in the graph's nodes, which a browser does not run."""
    file = sound_file()
    start = file.index(rb"\"nodes\":[")
    nodes = range(start, file.index(rb"\"outputs\":[{\"role", start))
    places = random.Random(0).sample(range(len(file)), 150)
    for place in places:
        flipped = file[:place] + bytes([file[place] ^ 4]) + file[place + 1 :]
        refused = "error" in loaded(page, flipped)
        assert refused == is_refused_by_python(flipped) or (place in nodes and not refused), place
        assert (
            loaded(page, flipped, DEVICE, hashlib.sha256(file).hexdigest())["error"]["code"] == "program_hash"
        )


def test_a_kernel_that_does_not_compile_is_named(page: Page, mlp: Shard, file: bytes) -> None:
    _, compiled = compiled_loads(file, "cpu")
    error = page.call("brokenKernel", mlp.name, "fn nothing() {")["error"]
    assert (error["code"], error["field"]) == ("program_format", compiled.kernels[0].name)


def test_a_kernel_that_strays_reaches_no_other_buffer(page: Page) -> None:
    own, result, secret = page.call("strayed", msgspec.to_builtins(STRAY), [1.0, 0.0, 42.0])["value"]
    assert (own, secret) == ([1.0], [42.0])
    assert set(result) <= {0.0, 1.0, 7.0}
