"""The browser's batch order, submissions, deltas and files are bit for bit those of Python."""

import json
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pytest
import torch

from metal_kernels.tensorfile import tensorfile_dumps
from tests.browser.conftest import Page

pytestmark = pytest.mark.browser

VECTORS = Path(__file__).parents[1] / "metal_kernels" / "vectors"
BATCHES = json.loads((VECTORS / "batches.json").read_text())
DELTAS = json.loads((VECTORS / "delta.json").read_text())
SUBMISSIONS = json.loads((VECTORS / "submissions.json").read_text())


@pytest.mark.parametrize("vector", BATCHES, ids=lambda vector: vector["name"])
def test_the_order_of_rows_is_the_published_one(page: Page, vector: dict[str, Any]) -> None:
    expected = [row for batch in vector["batches"] for row in batch]
    assert page.call("order", vector["arguments"])["value"] == expected


@pytest.mark.parametrize("vector", DELTAS, ids=lambda vector: vector["name"])
def test_a_delta_has_the_published_bytes(page: Page, vector: dict[str, Any]) -> None:
    asked = {"base": vector["base"], "changed": vector["new"], "bits": vector.get("bits", 8)}
    answer = page.call("delta", asked)
    assert b64decode(answer["value"]).hex() == vector["bytes_hex"]


@pytest.mark.parametrize("vector", SUBMISSIONS, ids=lambda vector: vector["name"])
def test_submissions_end_where_pythons_do(page: Page, vector: dict[str, Any]) -> None:
    ends = page.call("submissions", vector["estimates_ms"], vector["times_ms"], vector["steps"])
    assert ends == vector["ends"]


def one(*values: float, dtype: str = "float32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": [len(values)], "values": list(values)}


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"v": one(1.0)}, "delta_names"),
        ({"w": one(1.0), "v": one(1.0)}, "delta_names"),
        ({"w": one(1.0, 2.0)}, "delta_shape"),
        ({"w": one(1, dtype="int64")}, "delta_shape"),
        ({"w": one(3e38)}, "delta_not_finite"),
    ],
)
def test_a_delta_that_cannot_be_told_is_refused(page: Page, changed: dict[str, Any], code: str) -> None:
    assert page.call("delta", {"base": {"w": one(-3e38)}, "changed": changed})["error"]["code"] == code


def test_a_file_is_written_as_python_writes_it(page: Page) -> None:
    tensors = {
        "b": torch.randn(3, 2),
        "10": torch.arange(5),
        "9": torch.tensor([1, 2, 3], dtype=torch.int8),
        "naïve \U0001f319": torch.tensor(True),
        "\uffee": torch.zeros(0, 4),
    }
    file = tensorfile_dumps(tensors, metadata={"format": "x", "2": 'quoted "\n\x7f', "1": "é"})
    assert b64decode(page.call("rewritten", b64encode(file).decode())["value"]) == file


HALF = b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'


@pytest.mark.parametrize(
    ("header", "body"),
    [
        (HALF + b"}", b"\0" * 3),
        (HALF + b"}", b"\0" * 5),
        (HALF + b',"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', b"\0" * 4),
        (HALF + b',"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}}', b"\0" * 8),
        (b'{"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}', b"\0" * 8),
        (b'{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}', b"\0" * 4),
        (b'{"a":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}}', b"\2"),
        (b'{"__metadata__":{"a":1}}', b""),
        (b"[]", b""),
        (b"{", b""),
    ],
)
def test_a_file_that_is_wrong_is_refused(page: Page, header: bytes, body: bytes) -> None:
    file = len(header).to_bytes(8, "little") + header + body
    assert page.call("rewritten", b64encode(file).decode())["error"]["code"] == "tensor_file"


@pytest.mark.parametrize("file", [b"", b"\0" * 7, b"\xff" * 8, b"\x09" + b"\0" * 7 + b"{}"])
def test_a_file_cut_short_is_refused(page: Page, file: bytes) -> None:
    assert page.call("rewritten", b64encode(file).decode())["error"]["code"] == "tensor_file"
