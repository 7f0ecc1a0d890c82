"""One measured figure beside its reference, how it is printed and where it is kept."""

import operator
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

FOLDER = Path(__file__).resolve().parents[2] / "var" / "bench"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """`ratio` is value over reference; `target` is a bound as '>= 0.96', on `value` unless it begins with 'ratio'."""

    name: str
    value: float
    unit: str
    reference: str | None = None
    reference_value: float | None = None
    ratio: float | None = None
    target: str | None = None

    @property
    def verdict(self) -> Literal["met", "missed", ""]:
        if self.target is None:
            return ""
        figure, _, bound = self.target.rpartition(" ")
        subject, _, sign = figure.rpartition(" ")
        compare: Callable[[float, float], bool] = {">=": operator.ge, "<=": operator.le, "<": operator.lt}[
            sign
        ]
        measured = self.ratio if subject == "ratio" else self.value
        return "met" if measured is not None and compare(measured, float(bound)) else "missed"


def beside(
    *, name: str, value: float, unit: str, reference: str, reference_value: float, target: str | None = None
) -> Row:
    """A row whose ratio follows from its two figures."""
    return Row(
        name=name,
        value=value,
        unit=unit,
        reference=reference,
        reference_value=reference_value,
        ratio=value / reference_value if reference_value else None,
        target=target,
    )


def publish(suite: str, rows: Sequence[Row]) -> None:
    """Print the table and write `var/bench/<suite>.json`."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{suite}.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(rows), indent=2))
    cells = [("figure", "value", "unit", "reference", "its value", "ratio", "target", "")]
    for r in rows:
        figures = (_short(r.value), r.unit, r.reference or "", _short(r.reference_value), _short(r.ratio))
        cells.append((r.name, *figures, r.target or "", r.verdict))
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    for line in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    print(f"written to {path}\n")


def _short(figure: float | None) -> str:
    return "" if figure is None else f"{figure:,.4g}"
