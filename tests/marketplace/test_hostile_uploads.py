"""Broken and hostile uploads: one typed error each, that names the field."""

import json
import struct
import tracemalloc

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from marketplace.datasets.arrays import CHUNK_BYTES
from marketplace.errors import (
    DatasetDtype,
    DatasetError,
    DatasetLabels,
    DatasetNotFinite,
    DatasetShape,
    DatasetTooLarge,
    DatasetUnreadable,
    DatasetUnsafe,
)
from tests.marketplace.files import MAX_BYTES, classes_npz, ingest, npy, npz, zip_of

ROWS = np.eye(3)
LABELS = np.array([0, 1, 2])


def pickled() -> np.ndarray:
    return np.array([{"a": 1}, {"b": 2}, {"c": 3}], dtype=object)


def nested_objects() -> np.ndarray:
    return np.array([(1, [1]), (2, [2]), (3, [3])], dtype=[("a", "i8"), ("b", object)])


def with_value(value: float) -> np.ndarray:
    values = np.ones((3, 2))
    values[1, 1] = value
    return values


NPZ_CASES = {
    "pickled inputs": (npz(inputs=pickled(), targets=LABELS), DatasetUnsafe, "inputs"),
    "pickled targets": (npz(inputs=ROWS, targets=pickled()), DatasetUnsafe, "targets"),
    "objects nested in records": (npz(inputs=nested_objects(), targets=LABELS), DatasetUnsafe, "inputs"),
    "words": (npz(inputs=np.array([["a"], ["b"], ["c"]]), targets=LABELS), DatasetDtype, "inputs"),
    "words for targets": (npz(inputs=ROWS, targets=np.array(["a", "b", "c"])), DatasetDtype, "targets"),
    "complex": (npz(inputs=ROWS * 1j, targets=LABELS), DatasetDtype, "inputs"),
    "dates": (npz(inputs=np.zeros((3, 1), "M8[D]"), targets=LABELS), DatasetDtype, "inputs"),
    "nan": (npz(inputs=with_value(np.nan), targets=LABELS), DatasetNotFinite, "inputs"),
    "infinity": (npz(inputs=with_value(np.inf), targets=LABELS), DatasetNotFinite, "inputs"),
    "beyond float32": (npz(inputs=with_value(1e300), targets=LABELS), DatasetNotFinite, "inputs"),
    "nan in targets": (npz(inputs=ROWS, targets=np.array([1.5, np.nan, 0])), DatasetNotFinite, "targets"),
    "row counts differ": (npz(inputs=ROWS, targets=np.array([0, 1])), DatasetShape, "targets"),
    "no rows": (npz(inputs=ROWS[:0], targets=LABELS[:0]), DatasetShape, "inputs"),
    "one row": (npz(inputs=ROWS[:1], targets=LABELS[:1]), DatasetShape, "inputs"),
    "no columns": (npz(inputs=ROWS[:, :0], targets=LABELS), DatasetShape, "inputs"),
    "a single number": (npz(inputs=np.array(1.0), targets=LABELS), DatasetShape, "inputs"),
    "too many dimensions": (npz(inputs=np.ones((3, 1, 1, 1, 1, 1)), targets=LABELS), DatasetShape, "inputs"),
    "no targets": (npz(inputs=ROWS), DatasetShape, "targets"),
    "negative class": (npz(inputs=ROWS, targets=np.array([0, -1, 2])), DatasetLabels, "targets"),
    "class out of range": (npz(inputs=ROWS, targets=np.array([0, 70_000, 2])), DatasetLabels, "targets"),
    "one class only": (npz(inputs=ROWS, targets=np.array([4, 4, 4])), DatasetLabels, "targets"),
    "two classes a row": (npz(inputs=np.ones((3, 4)), targets=np.ones((3, 2), int)), DatasetShape, "targets"),
    "no zip": (b"not a zip archive, just text that goes on for a while", DatasetUnreadable, "file"),
    "empty": (b"", DatasetUnreadable, "file"),
    "truncated": (classes_npz()[:-40], DatasetUnreadable, "file"),
    "wrong array magic": (zip_of(**{"inputs.npy": b"NUMPY?" * 20}), DatasetUnreadable, "inputs"),
    "header of code": (
        zip_of(**{"inputs.npy": npy("__import__('os').abort()")}),
        DatasetUnreadable,
        "inputs",
    ),
    "header nested deep": (
        zip_of(**{"inputs.npy": npy("(" * 3000 + ")" * 3000)}),
        DatasetUnreadable,
        "inputs",
    ),
    "header too long": (zip_of(**{"inputs.npy": npy(" " * 60_000)}), DatasetUnreadable, "inputs"),
    "huge shape": (
        zip_of(**{"inputs.npy": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1<<60,)}")}),
        DatasetUnreadable,
        "inputs",
    ),
    "shape longer than its data": (
        zip_of(
            **{"inputs.npy": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (9000000000, 8)}", b"12")}
        ),
        DatasetUnreadable,
        "inputs",
    ),
    "negative shape": (
        zip_of(
            **{"inputs.npy": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -1)}", b"12345678")}
        ),
        DatasetUnreadable,
        "inputs",
    ),
    "shape of truth values": (
        zip_of(
            **{"inputs.npy": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3, True)}", bytes(12))}
        ),
        DatasetUnreadable,
        "inputs",
    ),
    "too many members": (zip_of(**{f"a{i}": b"" for i in range(20)}), DatasetTooLarge, "file"),
}


@pytest.mark.parametrize("case", NPZ_CASES)
def test_a_wrong_npz_gets_one_error_that_names_the_field(tmp_path, case):
    data, error, field = NPZ_CASES[case]
    with pytest.raises(error) as caught:
        ingest(tmp_path / "a.npz", data)
    assert type(caught.value) is error
    assert caught.value.field == field
    assert caught.value.message.startswith(f"{field}: ")


def test_a_pickle_in_an_npz_is_never_run(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (Exception.__call__, ("must not run",))

    with pytest.raises(DatasetUnsafe):
        ingest(tmp_path / "a.npz", npz(inputs=np.array([Bomb(), Bomb()], dtype=object), targets=LABELS[:2]))


def test_a_zip_bomb_is_refused_without_unpacking_it(tmp_path):
    header = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (250, 20000)}")
    bomb = zip_of(**{"inputs.npy": header + bytes(4 * 250 * 20_000), "targets.npy": header})
    assert len(bomb) < 30_000
    tracemalloc.start()
    with pytest.raises(DatasetTooLarge):
        ingest(tmp_path / "big.npz", bomb, max_bytes=1_000_000)
    with pytest.raises(DatasetUnsafe):
        ingest(tmp_path / "dense.npz", bomb, max_bytes=10**9)
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()


def test_a_large_upload_is_read_in_bounded_memory(tmp_path):
    big = npz(inputs=np.zeros((2000, 2500)), targets=np.arange(2000) % 2)
    tracemalloc.start()
    ingest(tmp_path / "a.npz", big, max_bytes=10**8)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(big) == pytest.approx(40_000_000, rel=0.01)
    assert peak_bytes < 5 * CHUNK_BYTES


def test_a_member_that_lies_about_its_size_is_read_no_further_than_it_says(tmp_path):
    whole = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 1)}", bytes(800_000))
    honest = zip_of(**{"inputs.npy": whole, "targets.npy": whole})
    short = len(whole) - 800_000 + 24
    lying = honest.replace(struct.pack("<L", len(whole)), struct.pack("<L", short))
    with pytest.raises(DatasetError):
        ingest(tmp_path / "a.npz", lying)


def test_integers_that_become_too_big_as_float32_are_refused_before_they_are_read(tmp_path):
    data = npz(inputs=np.zeros((1000, 2500), np.uint8), targets=np.arange(1000) % 2)
    with pytest.raises(DatasetTooLarge) as caught:
        ingest(tmp_path / "a.npz", data, max_bytes=3_000_000)
    assert caught.value.field == "file"


def header_of(entries: object, data: bytes = b"") -> bytes:
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text + data


SAFETENSORS_CASES = {
    "empty": (b"", DatasetUnreadable),
    "text": (b"these are no tensors at all", DatasetUnreadable),
    "header beyond the file": (struct.pack("<Q", 2**40) + b"{}", DatasetUnreadable),
    "huge header": (struct.pack("<Q", 1_000_000) + b"{" + b" " * 999_998 + b"}", DatasetTooLarge),
    "no json": (struct.pack("<Q", 4) + b"nope", DatasetUnreadable),
    "offsets beyond the data": (
        header_of({"inputs": {"dtype": "F32", "shape": [3, 1], "data_offsets": [0, 12]}}, b"1234"),
        DatasetUnreadable,
    ),
    "truncated": (safetensors.numpy.save({"inputs": ROWS, "targets": LABELS})[:-1], DatasetUnreadable),
    "no inputs": (safetensors.numpy.save({"targets": LABELS}), DatasetShape),
    "bfloat16": (
        header_of(
            {
                "inputs": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]},
                "targets": {"dtype": "I64", "shape": [2], "data_offsets": [4, 20]},
            },
            bytes(20),
        ),
        DatasetDtype,
    ),
    "a single number": (safetensors.numpy.save({"inputs": np.array(1.0), "targets": LABELS}), DatasetShape),
    "nan": (safetensors.numpy.save({"inputs": with_value(np.nan), "targets": LABELS}), DatasetNotFinite),
}


@pytest.mark.parametrize("case", SAFETENSORS_CASES)
def test_a_wrong_safetensors_file_gets_one_error(tmp_path, case):
    data, error = SAFETENSORS_CASES[case]
    with pytest.raises(error) as caught:
        ingest(tmp_path / "a.safetensors", data)
    assert type(caught.value) is error


CSV_CASES = {
    "empty": (b"", DatasetShape, "file"),
    "one column": (b"a\n1\n2\n", DatasetShape, "file"),
    "no header": (b"1,2\n3,4\n5,6\n", DatasetShape, "file"),
    "header only": (b"a,b\n", DatasetShape, "inputs"),
    "one row": (b"a,b\n1,2\n", DatasetShape, "inputs"),
    "ragged": (b"a,b\n1,0\n1,2,3\n", DatasetShape, "file"),
    "words in inputs": (b"a,b\n1,0\nx,1\n", DatasetDtype, "inputs"),
    "python number": (b"a,b\n1,0\n1_0,1\n", DatasetDtype, "inputs"),
    "empty cell": (b"a,b\n1,0\n,1\n", DatasetDtype, "inputs"),
    "empty target": (b"a,b\n1,0\n2,\n", DatasetDtype, "targets"),
    "mixed targets": (b"a,b\n1,0\n2,yes\n", DatasetDtype, "targets"),
    "one class": (b"a,b\n1,yes\n2,yes\n", DatasetLabels, "targets"),
    "negative class": (b"a,b\n1,-1\n2,1\n", DatasetLabels, "targets"),
    "class beyond integers": (b"a,b\n1,99999999999999999999\n2,1\n", DatasetLabels, "targets"),
    "nan": (b"a,b\nnan,0\n2,1\n", DatasetNotFinite, "inputs"),
    "infinity": (b"a,b\n-inf,0\n2,1\n", DatasetNotFinite, "inputs"),
    "not utf-8": (b"a,b\n\xff\xfe,0\n", DatasetUnreadable, "file"),
    "zero bytes": (b"a,b\n\0,0\n", DatasetUnreadable, "file"),
    "open quote": (b'a,b\n"1,0\n2,1\n', DatasetUnreadable, "file"),
    "endless line": (b"a,b\n" + b"1" * 1_100_000, DatasetTooLarge, "file"),
    "endless cell": (b"a,b\n" + b"1" * 200_000 + b",0\n", DatasetUnreadable, "file"),
    "too many columns": (b"a," * 20_000 + b"b\n", DatasetTooLarge, "file"),
}


@pytest.mark.parametrize("case", CSV_CASES)
def test_a_wrong_csv_gets_one_error_that_names_the_field(tmp_path, case):
    data, error, field = CSV_CASES[case]
    with pytest.raises(error) as caught:
        ingest(tmp_path / "a.csv", data)
    assert type(caught.value) is error
    assert caught.value.field == field


@pytest.mark.parametrize("where", ["header", "row"])
def test_a_csv_record_over_millions_of_lines_is_not_read_into_memory(tmp_path, where):
    bomb = b"" if where == "header" else b"a,b\n1,0\n"
    bomb += b'"ab\n",' * 1_000_000
    tracemalloc.start()
    with pytest.raises(DatasetTooLarge) as caught:
        ingest(tmp_path / "a.csv", bomb)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert caught.value.field == "file"
    assert peak_bytes < 40_000_000


def test_cells_in_quotes_may_go_over_lines(tmp_path):
    _, statistics, *_ = ingest(tmp_path / "a.csv", b'a,b\n1,"x\ny"\n2,z\n3,"x\ny"\n')
    assert statistics.classes == 2


def test_a_target_column_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DatasetShape, match=r"no single column 'c'.*a, b") as caught:
        ingest(tmp_path / "a.csv", b"a,b\n1,0\n2,1\n", target_column="c")
    assert caught.value.field == "target_column"


def test_words_cannot_be_declared_as_numbers(tmp_path):
    with pytest.raises(DatasetDtype, match="words"):
        ingest(tmp_path / "a.csv", b"a,b\n1,yes\n2,no\n", task="numbers")


def test_a_row_is_named_by_its_number(tmp_path):
    with pytest.raises(DatasetNotFinite, match="row 1 "):
        ingest(tmp_path / "a.npz", npz(inputs=with_value(np.nan), targets=LABELS))
    with pytest.raises(DatasetDtype, match="column 'a' of row 3 is 'x'"):
        ingest(tmp_path / "a.csv", b"a,b\n1,0\nx,1\n")


FUZZED = {
    ".npz": classes_npz(),
    ".safetensors": safetensors.numpy.save({"inputs": ROWS, "targets": LABELS}),
    ".csv": b"a,b,c\n1.5,2,yes\n2.5,3,no\n1,1,yes\n",
}


@given(
    suffix=st.sampled_from(sorted(FUZZED)),
    changes=st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), min_size=1, max_size=6),
    keep=st.integers(0, 2000),
)
@settings(max_examples=300, deadline=None)
def test_changed_and_cut_files_are_read_or_refused_but_never_crash(tmp_path_factory, suffix, changes, keep):
    data = bytearray(FUZZED[suffix])
    for position, value in changes:
        data[position % len(data)] = value
    cut = bytes(data[: len(data) - keep % 50])
    try:
        ingest(tmp_path_factory.getbasetemp() / f"fuzz{suffix}", cut, max_bytes=MAX_BYTES)
    except DatasetError:
        return
