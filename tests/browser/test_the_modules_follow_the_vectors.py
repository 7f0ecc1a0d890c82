"""The browser's batch order, submissions, deltas and files are bit for bit those of Python."""

import json
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from metal_kernels.compiler.delta import compile_delta
from metal_kernels.delta import LARGEST, DeltaEncoder
from metal_kernels.program.graph import DeltaBits, Value
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
    assert deltas(page, vector["base"], [vector["new"]], vector.get("bits", 8))["value"] == [
        b64encode(bytes.fromhex(vector["bytes_hex"])).decode()
    ]


@pytest.mark.parametrize("bits", [8, 4])
def test_deltas_in_a_row_have_the_bytes_of_pythons_encoder(page: Page, bits: DeltaBits) -> None:
    """Eighths in blocks of scale 1, so that no division is rounded; what the steps lose is kept for the next."""
    most, generator, encoder = LARGEST[bits], torch.Generator().manual_seed(0), DeltaEncoder(bits)
    base, changes = torch.zeros(300), []
    for _ in range(3):
        eighths = torch.randint(-8 * (most - 1), 8 * (most - 1), (300,), generator=generator)
        changes.append(eighths / 8)
        changes[-1][[0, 256]] = most
    expected = [b64encode(encoder.encode({"w": base}, {"w": changed})).decode() for changed in changes]
    told = [{"w": one(*changed.tolist())} for changed in changes]
    assert deltas(page, {"w": one(*base.tolist())}, told, bits)["value"] == expected


def deltas(page: Page, base: dict[str, Any], changes: list[dict[str, Any]], bits: DeltaBits) -> Any:
    spec = {name: Value(name, tensor["dtype"], tuple(tensor["shape"])) for name, tensor in base.items()}
    kernels = json.loads(msgspec.json.encode(compile_delta(spec, device="cpu", bits=bits).compiled))
    return page.call("deltas", {"kernels": kernels, "base": base, "changes": changes, "bits": bits})


@pytest.mark.parametrize("vector", SUBMISSIONS, ids=lambda vector: vector["name"])
def test_submissions_end_where_pythons_do(page: Page, vector: dict[str, Any]) -> None:
    ends = page.call("submissions", vector["estimates_ms"], vector["times_ms"], vector["steps"])
    assert ends == vector["ends"]


def one(*values: float, dtype: str = "float32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": [len(values)], "values": list(values)}


def test_a_delta_that_is_not_finite_is_refused(page: Page) -> None:
    answer = deltas(page, {"w": one(-3e38)}, [{"w": one(3e38)}], 8)
    assert answer["error"]["code"] == "delta_not_finite"


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
