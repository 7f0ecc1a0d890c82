"""The one form in which datasets are stored: a safetensors file of `inputs` and `targets`, row by row.

`plan` decides from two arrays' headers what they are for and how they will be stored; `write_canonical` streams
them there, checking every value on the way, in memory bounded by a few chunks. The same data gives the same bytes.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from marketplace.datasets.arrays import MAX_CLASSES, Array, ArraySource, UploadedArrays
from marketplace.datasets.statistics import Statistics
from marketplace.errors import DatasetDtype, DatasetLabels, DatasetNotFinite, DatasetShape, DatasetTooLarge

# classes: one class index a row; numbers: one or more values a row; tokens: a next token for each token.
Task = Literal["classes", "numbers", "tokens"]
MAX_RANK = 5
MIN_ROWS = 2

_SAFETENSORS_DTYPES = {"float32": "F32", "int64": "I64"}
_ITEM_BYTES = {"float32": 4, "int64": 8}


@dataclass(frozen=True, slots=True)
class Plan:
    """How a dataset will be stored. Shapes are those of one row."""

    task: Task
    rows: int
    input_shape: tuple[int, ...]
    input_dtype: str
    target_shape: tuple[int, ...]
    target_dtype: str

    @property
    def size_bytes(self) -> int:
        inputs_bytes = math.prod(self.input_shape) * _ITEM_BYTES[self.input_dtype]
        return self.rows * (inputs_bytes + math.prod(self.target_shape) * _ITEM_BYTES[self.target_dtype])


def plan(arrays: UploadedArrays, *, max_bytes: int, task: Task | None = None) -> Plan:
    """Check two arrays against each other and decide what they are for, unless `task` says so.

    Whole-number targets are classes, or tokens where the inputs are whole numbers of the same two-dimensional
    shape; other targets are numbers.
    """
    inputs, targets = arrays.inputs, arrays.targets
    for source in (inputs, targets):
        _check_array(source)
    if inputs.rows != targets.rows:
        raise DatasetShape(
            f"targets: {targets.rows} rows, but inputs has {inputs.rows}. Give one target for each row.",
            field="targets",
        )
    chosen = task or _task_of(inputs, targets)
    if arrays.labels and chosen != "classes":
        raise DatasetDtype(
            "targets: words, which can only name classes. Upload with task=classes.", field="targets"
        )
    target_shape = _target_shape(chosen, inputs, targets)
    made = Plan(
        task=chosen,
        rows=inputs.rows,
        input_shape=inputs.shape[1:] or (1,),
        input_dtype="int64" if chosen == "tokens" else "float32",
        target_shape=target_shape,
        target_dtype="float32" if chosen == "numbers" else "int64",
    )
    if made.size_bytes > max_bytes:
        raise DatasetTooLarge(
            f"file: {made.size_bytes:,} bytes once stored as {made.input_dtype}, over the limit of "
            f"{max_bytes:,}. Upload fewer rows.",
            field="file",
        )
    return made


def write_canonical(arrays: UploadedArrays, layout: Plan, out: IO[bytes]) -> Statistics:
    """Stream both arrays into `out`; raises on the first value that cannot be trained on."""
    out.write(_header(layout))
    statistics = Statistics(task=layout.task)
    for chunk in _converted(arrays.inputs, layout.input_shape, layout.input_dtype):
        statistics.add_inputs(chunk)
        out.write(chunk.tobytes())
    for chunk in _converted(arrays.targets, layout.target_shape, layout.target_dtype):
        statistics.add_targets(chunk)
        out.write(chunk.tobytes())
    if statistics.single_class:
        raise DatasetLabels(
            "targets: every row has the same class: there is nothing to learn. Add rows of other classes.",
            field="targets",
        )
    return statistics


def open_canonical(path: Path) -> tuple[Array, Array]:
    """`inputs` and `targets` of a stored dataset, mapped into memory read-only."""
    with path.open("rb") as file:
        header_bytes = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(header_bytes))
    names = {code: name for name, code in _SAFETENSORS_DTYPES.items()}

    def mapped(name: str) -> Array:
        entry = header[name]
        offset = 8 + header_bytes + entry["data_offsets"][0]
        return np.memmap(
            path, mode="r", dtype=names[entry["dtype"]], shape=tuple(entry["shape"]), offset=offset
        )

    return mapped("inputs"), mapped("targets")


def pack_rows(inputs: Array, targets: Array) -> bytes:
    """A small canonical file of rows that are in memory: a slice, or the validation split."""
    layout = Plan(
        task="classes",  # not stored
        rows=inputs.shape[0],
        input_shape=inputs.shape[1:],
        input_dtype=str(inputs.dtype),
        target_shape=targets.shape[1:],
        target_dtype=str(targets.dtype),
    )
    return _header(layout) + inputs.tobytes() + targets.tobytes()


def _header(layout: Plan) -> bytes:
    inputs_bytes = layout.rows * math.prod(layout.input_shape) * _ITEM_BYTES[layout.input_dtype]
    entries = {
        "inputs": {
            "dtype": _SAFETENSORS_DTYPES[layout.input_dtype],
            "shape": [layout.rows, *layout.input_shape],
            "data_offsets": [0, inputs_bytes],
        },
        "targets": {
            "dtype": _SAFETENSORS_DTYPES[layout.target_dtype],
            "shape": [layout.rows, *layout.target_shape],
            "data_offsets": [inputs_bytes, layout.size_bytes],
        },
    }
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _check_array(source: ArraySource) -> None:
    name, shape = source.field, source.shape
    if not 1 <= len(shape) <= MAX_RANK:
        raise DatasetShape(
            f"{name}: {len(shape)} dimensions; use 1 to {MAX_RANK}, the first being the rows.", field=name
        )
    if shape[0] < MIN_ROWS:
        raise DatasetShape(
            f"{name}: {shape[0]} rows; at least {MIN_ROWS} are needed, to train and to validate.", field=name
        )
    if math.prod(shape) == 0:
        raise DatasetShape(
            f"{name}: of shape {shape}, which holds nothing. Give every row a value.", field=name
        )
    if source.dtype.kind not in "buif":
        raise DatasetDtype(
            f"{name}: of dtype {source.dtype}. Use float32, float64 or whole numbers.", field=name
        )


def _task_of(inputs: ArraySource, targets: ArraySource) -> Task:
    if targets.dtype.kind == "f":
        return "numbers"
    same_sequences = len(targets.shape) == 2 and targets.shape == inputs.shape and targets.shape[1] > 1
    if same_sequences and inputs.dtype.kind in "ui":
        return "tokens"
    return "classes"


def _target_shape(task: Task, inputs: ArraySource, targets: ArraySource) -> tuple[int, ...]:
    shape = targets.shape[1:]
    if task == "numbers":
        if len(shape) > 1:
            raise DatasetShape(
                f"targets: of shape {targets.shape}; give one row of numbers for each row.", field="targets"
            )
        return shape or (1,)
    if targets.dtype.kind == "f" or (task == "tokens" and inputs.dtype.kind == "f"):
        raise DatasetDtype(f"targets: {task} must be whole numbers. Convert them to int64.", field="targets")
    if task == "tokens":
        if len(shape) != 1 or targets.shape != inputs.shape:
            raise DatasetShape(
                f"targets: of shape {targets.shape}; tokens need inputs and targets of one shape (rows, length).",
                field="targets",
            )
        return shape
    if math.prod(shape) != 1:
        raise DatasetShape(
            f"targets: of shape {targets.shape}; give one class index for each row, or floats to predict.",
            field="targets",
        )
    return ()


def _converted(source: ArraySource, row_shape: tuple[int, ...], dtype: str) -> Iterator[Array]:
    row = 0
    for raw in source.chunks():
        chunk = raw.reshape(raw.shape[0], *row_shape)
        if dtype == "float32":
            with np.errstate(over="ignore"):
                values: Array = np.ascontiguousarray(chunk, dtype=np.float32)
            _check_finite(source.field, values, row)
        else:
            _check_indices(source.field, chunk, row)
            values = np.ascontiguousarray(chunk, dtype=np.int64)
        yield values
        row += raw.shape[0]
    if row != source.rows:
        raise DatasetShape(
            f"{source.field}: ends after {row} of {source.rows} rows. Upload it again.", field=source.field
        )


def _check_finite(field: str, values: Array, first_row: int) -> None:
    wrong = ~np.isfinite(values)
    if wrong.any():
        at = int(np.argmax(wrong.reshape(values.shape[0], -1).any(axis=1)))
        raise DatasetNotFinite(
            f"{field}: row {first_row + at} (counted from 0) holds NaN, infinity or a number beyond float32. "
            "Remove or replace it.",
            field=field,
        )


def _check_indices(field: str, values: Array, first_row: int) -> None:
    wrong = (values < 0) | (values >= MAX_CLASSES)
    if wrong.any():
        at = int(np.argmax(wrong.reshape(values.shape[0], -1).any(axis=1)))
        value: Any = values.reshape(-1)[int(np.argmax(wrong.reshape(-1)))]
        raise DatasetLabels(
            f"{field}: row {first_row + at} (counted from 0) holds {int(value)}; an index must be 0 to "
            f"{MAX_CLASSES - 1:,}. "
            "Number the classes from 0, or upload with task=numbers to predict amounts.",
            field=field,
        )
