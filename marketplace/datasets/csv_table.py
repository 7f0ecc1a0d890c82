"""Reads CSV uploads: a header row, numbers, and one target column of numbers or of words (names of classes).

The file is walked twice: once to count rows and to see what the target column holds, once for the numbers.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np

from marketplace.datasets.arrays import MAX_CLASSES, Array, ArraySource, UploadedArrays, chunk_rows
from marketplace.errors import DatasetDtype, DatasetLabels, DatasetShape, DatasetTooLarge, DatasetUnreadable

MAX_RECORD_CHARACTERS = 1024 * 1024
MAX_COLUMNS = 16_384
MAX_LABEL_CHARACTERS = 100


def read_csv(path: Path, *, target_column: str | None = None) -> UploadedArrays:
    """The table without its target column, and that column: the named one, or else the last."""
    columns = _header(path)
    target = _target_index(columns, target_column)
    survey = _survey(path, columns, target)
    labels = tuple(sorted(survey.words))
    input_shape = (survey.rows, len(columns) - 1)
    inputs = ArraySource(
        "inputs",
        input_shape,
        np.dtype(np.float64),
        partial(_input_chunks, path, columns, target, input_shape),
    )
    targets_dtype = np.dtype(np.int64) if labels or survey.whole_numbers else np.dtype(np.float64)
    targets = ArraySource(
        "targets",
        (survey.rows,),
        targets_dtype,
        partial(_target_chunks, path, columns, target, labels, targets_dtype),
    )
    return UploadedArrays(inputs, targets, labels)


@dataclass(slots=True)
class _Survey:
    """What the target column holds."""

    rows: int = 0
    numbers: int = 0
    whole_numbers: bool = True
    words: set[str] = field(default_factory=set)


def _header(path: Path) -> list[str]:
    with _open(path) as file:
        columns = next(_records(file), [])
    names = [name.strip() for name in columns]
    if len(names) < 2:
        raise DatasetShape(
            "file: needs a header row and at least two columns, separated by commas, the target among them.",
            field="file",
        )
    if len(names) > MAX_COLUMNS:
        raise DatasetTooLarge(
            f"file: {len(names):,} columns, over the limit of {MAX_COLUMNS:,}. Upload it as .npz.",
            field="file",
        )
    if all(_is_number(name) for name in names):
        raise DatasetShape(
            "file: the first row has only numbers. Add a header row with column names.", field="file"
        )
    return names


def _target_index(columns: list[str], target_column: str | None) -> int:
    if not target_column:
        return len(columns) - 1
    if columns.count(target_column) != 1:
        raise DatasetShape(
            f"target_column: the header has no single column '{target_column[:100]}'. "
            f"Choose one of: {', '.join(columns[:20])}.",
            field="target_column",
        )
    return columns.index(target_column)


def _survey(path: Path, columns: list[str], target: int) -> _Survey:
    survey = _Survey()
    for number, row in _rows(path, columns):
        survey.rows += 1
        cell = row[target].strip()
        if _is_number(cell):
            survey.numbers += 1
            survey.whole_numbers = survey.whole_numbers and cell.lstrip("+-").isdecimal()
        elif 0 < len(cell) <= MAX_LABEL_CHARACTERS:
            survey.words.add(cell)
        else:
            raise DatasetDtype(
                f"targets: row {number} of column '{columns[target]}' is empty or over "
                f"{MAX_LABEL_CHARACTERS} characters. Put a number or the name of a class there.",
                field="targets",
            )
        if survey.numbers and survey.words:
            raise DatasetDtype(
                f"targets: column '{columns[target]}' mixes numbers and words (row {number}: '{cell[:40]}'). "
                "Use only numbers or only class names.",
                field="targets",
            )
        if len(survey.words) > MAX_CLASSES:
            raise DatasetLabels(
                f"targets: column '{columns[target]}' has more than {MAX_CLASSES:,} different words. "
                "Choose a column of class names or of numbers.",
                field="targets",
            )
    return survey


def _input_chunks(path: Path, columns: list[str], target: int, shape: tuple[int, ...]) -> Iterator[Array]:
    step = chunk_rows(shape, 64)  # a number's text in memory
    pending: list[list[str]] = []
    first = 0
    for number, row in _rows(path, columns):
        if not pending:
            first = number
        pending.append(row[:target] + row[target + 1 :])
        if len(pending) == step:
            yield _numbers(pending, columns[:target] + columns[target + 1 :], first)
            pending = []
    if pending:
        yield _numbers(pending, columns[:target] + columns[target + 1 :], first)


def _numbers(rows: list[list[str]], columns: list[str], first: int) -> Array:
    for offset, row in enumerate(rows):
        for column, cell in zip(columns, row, strict=True):
            if not _is_number(cell):
                problem = f"is '{cell.strip()[:40]}', which is no number" if cell.strip() else "is empty"
                raise DatasetDtype(
                    f"inputs: column '{column}' of row {first + offset} {problem}. Put a number there.",
                    field="inputs",
                )
    return np.array(rows, dtype=np.float64)


def _target_chunks(
    path: Path,
    columns: list[str],
    target: int,
    labels: tuple[str, ...],
    dtype: np.dtype[np.float64] | np.dtype[np.int64],
) -> Iterator[Array]:
    index_of = {label: index for index, label in enumerate(labels)}
    step = chunk_rows((0,), 64)
    pending: list[float | int] = []
    for number, row in _rows(path, columns):
        cell = row[target].strip()
        pending.append(index_of[cell] if labels else _parse(cell, dtype.kind, number))
        if len(pending) == step:
            yield np.array(pending, dtype=dtype)
            pending = []
    if pending:
        yield np.array(pending, dtype=dtype)


def _parse(cell: str, kind: str, number: int) -> float | int:
    if kind == "f":
        return float(cell)
    value = int(cell)
    if abs(value) >= 2**63:
        raise DatasetLabels(
            f"targets: row {number} holds {cell[:40]}, which is out of range.", field="targets"
        )
    return value


def _is_number(cell: str) -> bool:
    """Whether it is a number as a spreadsheet writes one (Python's `1_000` is not)."""
    if len(cell) > 400:
        return False
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _rows(path: Path, columns: list[str]) -> Iterator[tuple[int, list[str]]]:
    """The rows under the header, each with its number in the file, checked to have a cell for each column."""
    with _open(path) as file:
        records = _records(file)
        next(records)
        for number, row in enumerate(records, start=2):
            if not row:
                continue
            if len(row) != len(columns):
                raise DatasetShape(
                    f"file: row {number} has {len(row)} cells, the header has {len(columns)}. Mend that row.",
                    field="file",
                )
            yield number, row


def _open(path: Path) -> IO[str]:
    return path.open(encoding="utf-8-sig", newline="")


def _records(file: IO[str]) -> Iterator[list[str]]:
    lines = _BoundedLines(file)
    try:
        for record in csv.reader(lines, strict=True):
            lines.begin_record()
            yield record
    except UnicodeDecodeError as error:
        raise DatasetUnreadable(
            "file: not text in UTF-8. Save the table as UTF-8 CSV.", field="file"
        ) from error
    except csv.Error as error:
        raise DatasetUnreadable(
            f"file: not a CSV table ({error}). Save it as CSV with commas.", field="file"
        ) from error


class _BoundedLines:
    """The file's lines. Cells in quotes may stretch a record over many, so it is the record that is bounded."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._record_characters = 0

    def begin_record(self) -> None:
        self._record_characters = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._file.readline(MAX_RECORD_CHARACTERS)
        if not line:
            raise StopIteration
        self._record_characters += len(line)
        if self._record_characters >= MAX_RECORD_CHARACTERS:
            raise DatasetTooLarge(
                f"file: a row has over {MAX_RECORD_CHARACTERS:,} characters. Upload the data as .npz.",
                field="file",
            )
        if "\0" in line:
            raise DatasetUnreadable("file: not a text file. Save the table as UTF-8 CSV.", field="file")
        return line
