"""Sound uploads of every format become the same canonical data."""

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from marketplace.datasets import arrays
from marketplace.datasets.canonical import pack_rows
from tests.marketplace.files import classes_npz, ingest, npz


def test_the_three_formats_of_the_same_data_are_stored_as_the_same_bytes(tmp_path):
    inputs = np.array([[0.5, -1.0], [2.0, 3.25], [4.0, 0.0]])
    targets = np.array([0, 1, 1])
    ingest(tmp_path / "a.npz", npz(inputs=inputs, targets=targets))
    ingest(tmp_path / "b.safetensors", safetensors.numpy.save({"x": inputs.astype(np.float32), "y": targets}))
    ingest(tmp_path / "c.csv", b"one,two,class\n0.5,-1,0\n2.0,3.25,1\n4,0,1\n")
    stored = {(tmp_path / f"{name}.canonical").read_bytes() for name in "abc"}
    assert len(stored) == 1
    loaded = safetensors.numpy.load(stored.pop())
    np.testing.assert_array_equal(loaded["inputs"], inputs.astype(np.float32))
    np.testing.assert_array_equal(loaded["targets"], targets)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", "float16", "float32", "float64", ">f8", "bool"])
def test_inputs_of_any_number_type_become_float32(tmp_path, dtype):
    values = np.array([[0, 1], [1, 0], [1, 1]]).astype(dtype)
    layout, _, inputs, _ = ingest(tmp_path / "a.npz", npz(inputs=values, targets=np.array([0, 1, 2])))
    assert layout.input_dtype == "float32"
    np.testing.assert_array_equal(inputs, values.astype(np.float32))


def test_float_targets_are_numbers_with_one_column_at_least(tmp_path):
    layout, statistics, _, targets = ingest(tmp_path / "a.npz", npz(x=np.eye(3), y=np.array([0.5, 1.5, 2.5])))
    assert (layout.task, layout.target_shape, statistics.classes) == ("numbers", (1,), None)
    np.testing.assert_array_equal(targets, np.array([[0.5], [1.5], [2.5]], dtype=np.float32))


def test_whole_numbers_in_and_out_of_one_shape_are_tokens(tmp_path):
    tokens = np.array([[1, 2, 3], [4, 5, 6]])
    layout, statistics, inputs, _ = ingest(tmp_path / "a.npz", npz(inputs=tokens, targets=tokens + 1))
    assert (layout.task, layout.input_dtype, statistics.classes) == ("tokens", "int64", 8)
    np.testing.assert_array_equal(inputs, tokens)


def test_whole_number_targets_can_be_declared_as_numbers(tmp_path):
    prices = npz(inputs=np.eye(3), targets=np.array([250_000, 99_000, 310_000]))
    layout, *_ = ingest(tmp_path / "a.npz", prices, task="numbers")
    assert (layout.task, layout.target_dtype) == ("numbers", "float32")


def test_a_column_of_targets_is_one_class_for_each_row(tmp_path):
    layout, *_ = ingest(tmp_path / "a.npz", npz(inputs=np.eye(3), targets=np.array([[0], [1], [1]])))
    assert (layout.task, layout.target_shape) == ("classes", ())


def test_column_major_arrays_keep_their_rows(tmp_path):
    values = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    _, _, inputs, _ = ingest(tmp_path / "a.npz", npz(inputs=values, targets=np.array([0, 1, 1])))
    np.testing.assert_array_equal(inputs, values)


def test_csv_words_become_classes_in_sorted_order(tmp_path):
    table = b"kind,length\nplum,1.5\napple,2.5\nplum,3.5\n"
    _, statistics, inputs, targets = ingest(tmp_path / "a.csv", table, target_column="kind")
    np.testing.assert_array_equal(targets, [1, 0, 1])
    np.testing.assert_array_equal(inputs, np.array([[1.5], [2.5], [3.5]], dtype=np.float32))
    assert statistics.preview(("apple", "plum"))["labels"] == ["apple", "plum"]


def test_csv_targets_with_decimals_are_numbers(tmp_path):
    layout, *_ = ingest(tmp_path / "a.csv", b"a,b\n1,0.5\n2,1\n")
    assert layout.task == "numbers"


def test_csv_takes_byte_order_mark_quotes_and_blank_last_lines(tmp_path):
    _, _, inputs, targets = ingest(tmp_path / "a.csv", '\ufeff"a, x","b"\r\n"1","0"\r\n2,1\r\n\r\n'.encode())
    np.testing.assert_array_equal(inputs[:, 0], [1, 2])
    np.testing.assert_array_equal(targets, [0, 1])


def test_the_preview_shows_first_rows_spread_and_class_counts(tmp_path):
    _, statistics, *_ = ingest(tmp_path / "a.npz", classes_npz(rows=12, width=40, classes=3))
    preview = statistics.preview(())
    assert len(preview["inputs"]) == 5
    assert len(preview["inputs"][0]) == 16
    assert preview["targets"] == [[0], [1], [2], [0], [1]]
    assert preview["class_counts"] == [4, 4, 4]
    assert preview["input_spread"]["min"] == 0
    assert preview["input_spread"]["max"] == pytest.approx(479 / 7)
    assert preview["input_spread"]["mean"] == pytest.approx(479 / 14, rel=1e-6)


@given(rows=st.integers(2, 40), width=st.integers(1, 5), chunk_bytes=st.integers(1, 200))
@settings(max_examples=40, deadline=None)
def test_the_size_of_chunks_changes_nothing(tmp_path_factory, rows, width, chunk_bytes):
    folder = tmp_path_factory.mktemp("chunks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "CHUNK_BYTES", chunk_bytes)
        _, statistics, inputs, targets = ingest(folder / "a.npz", classes_npz(rows, width, 2))
    np.testing.assert_array_equal(
        inputs, (np.arange(rows * width).reshape(rows, width) / 7).astype(np.float32)
    )
    np.testing.assert_array_equal(targets, np.arange(rows) % 2)
    assert sum(statistics.preview(())["class_counts"]) == rows


def test_packed_rows_are_a_safetensors_file():
    inputs, targets = np.ones((3, 2), dtype=np.float32), np.array([0, 1, 0])
    loaded = safetensors.numpy.load(pack_rows(inputs, targets))
    np.testing.assert_array_equal(loaded["inputs"], inputs)
    np.testing.assert_array_equal(loaded["targets"], targets)
