"""An invoice as a PDF, made of its rows whenever it is asked for: the same rows give the same file.

The fonts lie beside this module, so that a fresh machine needs nothing installed.
"""

import logging
from datetime import UTC
from pathlib import Path

from fpdf import FPDF
from fpdf.enums import XPos, YPos

from marketplace.invoices.sheet import Sheet, sheet_of
from marketplace.models import Invoice

_FONTS = Path(__file__).parent / "fonts"
_SANS = "DejaVu"
# Of a longer invoice several rounds make a line; its page and the API have each of them.
LINES_MAX = 400
_MARGIN_MM = 18
_LINE_MM = 5.5
_GREY = (110, 116, 128)
_INK = (24, 28, 38)
_RULE = (205, 209, 217)
# Heading, width, alignment: together the width of A4 between the margins.
_COLUMNS = (
    ("Round", 26, "L"),
    ("Device class", 56, "L"),
    ("GPU-seconds", 34, "R"),
    ("Rate", 26, "R"),
    ("Amount", 32, "R"),
)
_WIDTH_MM = sum(width for _, width, _ in _COLUMNS)
_NOT_PRINTABLE = "Some characters cannot be printed here; the page of this invoice shows them."

# It says of each glyph that the font lacks; the sheet says so once itself.
logging.getLogger("fpdf").setLevel(logging.ERROR)
logging.getLogger("fontTools").setLevel(logging.ERROR)


class _Paper(FPDF):
    def __init__(self, number: str) -> None:
        super().__init__(format="A4")
        self._number = number
        self.set_margins(_MARGIN_MM, _MARGIN_MM)
        self.set_auto_page_break(True, margin=_MARGIN_MM + 6)
        self.add_font(_SANS, "", str(_FONTS / "DejaVuSans.ttf"))
        self.add_font(_SANS, "B", str(_FONTS / "DejaVuSans-Bold.ttf"))

    def footer(self) -> None:
        self.set_y(-_MARGIN_MM)
        self.write_in("", 8, _GREY)
        self.cell(0, 5, f"Invoice {self._number}, page {self.page_no()} of {{nb}}", align="R")

    def write_in(self, style: str, size: float, colour: tuple[int, int, int] = _INK) -> None:
        self.set_font(_SANS, style, size)
        self.set_text_color(*colour)

    def text_line(self, text: str, *, width: float = 0, height: float = _LINE_MM) -> None:
        self.multi_cell(width, height, text, align="L", new_x=XPos.LMARGIN, new_y=YPos.NEXT)

    def rule(self) -> None:
        self.set_draw_color(*_RULE)
        self.line(self.l_margin, self.get_y(), self.l_margin + _WIDTH_MM, self.get_y())

    def lacks(self, text: str) -> bool:
        glyphs = self.fonts[_SANS.lower()].cmap  # type: ignore[union-attr]  # a font of a file
        return any(ord(char) not in glyphs for char in text if not char.isspace())


def invoice_pdf(invoice: Invoice) -> bytes:
    sheet = sheet_of(invoice, at_most=LINES_MAX)
    paper = _Paper(sheet.number)
    paper.set_title(f"Invoice {sheet.number}")
    paper.set_creator("Nightshift")
    paper.set_creation_date(invoice.issued_at.astimezone(UTC))
    paper.set_lang("en")
    paper.add_page()
    _head(paper, sheet)
    _table(paper, sheet)
    _sums(paper, sheet)
    _notes(paper, sheet)
    return bytes(paper.output())


def _head(paper: _Paper, sheet: Sheet) -> None:
    paper.write_in("B", 18)
    paper.text_line(f"Invoice {sheet.number}", height=10)
    paper.write_in("", 9, _GREY)
    paper.text_line(f"Issued on {sheet.issued_on}")
    paper.ln(6)
    top, half = paper.get_y(), _WIDTH_MM / 2
    bottoms = []
    for left, heading, lines in ((0.0, "From", sheet.seller), (half, "To", sheet.buyer)):
        paper.set_xy(paper.l_margin + left, top)
        paper.write_in("", 8, _GREY)
        paper.cell(half, 5, heading, new_x=XPos.LEFT, new_y=YPos.NEXT)
        paper.write_in("", 9.5)
        for line in lines:
            paper.multi_cell(half - 6, 5, line, align="L", new_x=XPos.LEFT, new_y=YPos.NEXT)
        bottoms.append(paper.get_y())
    paper.set_xy(paper.l_margin, max(bottoms) + 7)
    paper.write_in("B", 10.5)
    paper.text_line(f"Training job: {sheet.job}")
    paper.write_in("", 8, _GREY)
    paper.text_line(sheet.job_reference)
    paper.ln(3)


def _table(paper: _Paper, sheet: Sheet) -> None:
    _headings(paper)
    paper.write_in("", 9)
    for line in sheet.lines:
        if paper.will_page_break(_LINE_MM):
            paper.add_page()
            _headings(paper)
            paper.write_in("", 9)
        _row(paper, (line.rounds, line.device, line.gpu_seconds, line.rate, line.amount))
    paper.rule()


def _headings(paper: _Paper) -> None:
    paper.write_in("", 8, _GREY)
    _row(paper, tuple(heading for heading, _, _ in _COLUMNS))
    paper.rule()
    paper.ln(1)


def _row(paper: _Paper, cells: tuple[str, ...]) -> None:
    for text, (_, width, align) in zip(cells, _COLUMNS, strict=True):
        paper.cell(width, _LINE_MM, text, align=align)
    paper.ln(_LINE_MM)


def _sums(paper: _Paper, sheet: Sheet) -> None:
    amount_mm = _COLUMNS[-1][1]
    if paper.will_page_break(_LINE_MM * (len(sheet.sums) + 2)):
        paper.add_page()
    paper.ln(2)
    for words, amount in (("GPU-seconds in all", sheet.gpu_seconds), *sheet.sums):
        is_total = (words, amount) == sheet.sums[-1]
        paper.write_in("B" if is_total else "", 11 if is_total else 9)
        paper.cell(_WIDTH_MM - amount_mm, _LINE_MM + (2 if is_total else 0), words, align="R")
        paper.cell(amount_mm, _LINE_MM + (2 if is_total else 0), amount, align="R")
        paper.ln(_LINE_MM + (2 if is_total else 0))


def _notes(paper: _Paper, sheet: Sheet) -> None:
    paper.ln(7)
    printed = " ".join((*sheet.seller, *sheet.buyer, sheet.job))
    notes = (*sheet.notes, _NOT_PRINTABLE) if paper.lacks(printed) else sheet.notes
    paper.write_in("", 8, _GREY)
    for note in notes:
        paper.text_line(note, height=4.4)
        paper.ln(0.8)
