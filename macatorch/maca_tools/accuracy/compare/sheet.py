"""The report as tables: .csv and .xlsx with one row for each tensor, and what is on top of them as .json.

The first line of the .csv is its header, as every reader of that format expects; the .xlsx has the culprit above it.
"""

import csv
import json
import math
from typing import Any, Dict, Iterator, List, Sequence

# Rows that a sheet of the format can hold; a longer report goes on in a second sheet.
_MAX_ROWS = 1_048_000
_MAX_TEXT = 30_000
COLOURS = {
    "wrong": "F8B4B4",
    "passed on": "FCE8A6",
    "random": "D9D2E9",
    "close": "E2F0D9",
    "same": "FFFFFF",
    "not compared": "D9D9D9",
}
_WIDTHS = {"operator0": 34, "operator1": 34, "tensor": 22, "reason": 60, "stack0": 50, "stack1": 50}


def rows(columns: Sequence[str], operator: Any) -> Iterator[List[Any]]:
    """The rows of one operator; verdict and reason stand in each, the stacks as one call a line, innermost first."""
    stacks = {"stack0": "\n".join(operator.stack0[::-1]), "stack1": "\n".join(operator.stack1[::-1])}
    common = {
        "index": operator.index,
        "stream": operator.stream,
        "operator0": operator.name0,
        "operator1": operator.name1,
        "verdict": operator.verdict,
    }
    for row in operator.rows or [{}]:
        merged = {**row, **common, **stacks, "reason": row.get("reason") or operator.reason}
        yield [_plain(merged.get(column)) for column in columns]


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and not math.isfinite(value):
        # Neither format has a number for these.
        return "NaN" if value != value else ("Inf" if value > 0 else "-Inf")
    if isinstance(value, str):
        text = value[:_MAX_TEXT]
        # A cell that begins like a formula would be computed by the program that opens the file.
        return "'" + text if text[:1] in ("=", "+", "@") else text
    return "" if value is None else value


def _head_lines(head: Dict[str, Any]) -> List[str]:
    counts = ", ".join(f"{kind}: {count}" for kind, count in head["counts"].items())
    return [head["headline"], f"side 0: {head['dir0']}   side 1: {head['dir1']}   {counts}"]


def write_head(path: str, head: Dict[str, Any]) -> str:
    """What the report says as a whole: its headline, the two folders, the operators of each verdict, notes."""
    with open(path, "w", encoding="utf-8") as file:
        json.dump(head, file, indent=1)
        file.write("\n")
    return path


def write_csv(path: str, columns: Sequence[str], operators: Iterator[Any]) -> str:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for operator in operators:
            writer.writerows(rows(columns, operator))
    return path


def read_csv(path: str) -> List[Dict[str, str]]:
    """The rows of a .csv by column. Earlier versions wrote lines before the header that begin with "# "."""
    with open(path, newline="", encoding="utf-8") as file:
        start = file.tell()
        while file.readline().startswith("# "):
            start = file.tell()
        file.seek(start)
        return list(csv.DictReader(file))


def write_xlsx(path: str, columns: Sequence[str], operators: Iterator[Any], head: Dict[str, Any]) -> str:
    """The path, or "" where neither xlsxwriter nor openpyxl is installed. Memory does not grow with the rows."""
    book: Any
    try:
        book = _XlsxWriter(path, columns, head)
    except ImportError:
        try:
            book = _OpenPyXl(path, columns, head)
        except ImportError:
            return ""
    for operator in operators:
        for row in rows(columns, operator):
            book.add(row, operator.verdict)
    book.close()
    return path


class _XlsxWriter:
    def __init__(self, path: str, columns: Sequence[str], head: Dict[str, Any]) -> None:
        import xlsxwriter

        self._columns, self._head = columns, _head_lines(head)
        self._book = xlsxwriter.Workbook(
            path, {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
        )
        self._bold = self._book.add_format({"bold": True, "font_size": 13})
        self._header = self._book.add_format({"bold": True, "bg_color": "#305496", "font_color": "#FFFFFF"})
        self._formats = {
            kind: self._book.add_format({"bg_color": f"#{colour}", "valign": "top"}) for kind, colour in COLOURS.items()
        }
        self._sheets = 0
        self._begin()

    def _begin(self) -> None:
        self._sheets += 1
        self._sheet = self._book.add_worksheet("report" if self._sheets == 1 else f"report {self._sheets}")
        for index, column in enumerate(self._columns):
            self._sheet.set_column(index, index, _WIDTHS.get(column, 12))
        for number, line in enumerate(self._head):
            self._sheet.write_string(number, 0, line, self._bold)
        for index, column in enumerate(self._columns):
            self._sheet.write_string(len(self._head), index, column, self._header)
        self._sheet.freeze_panes(len(self._head) + 1, 4)
        self._row = len(self._head) + 1

    def add(self, row: List[Any], kind: str) -> None:
        if self._row >= _MAX_ROWS:
            self._end()
            self._begin()
        for index, value in enumerate(row):
            self._sheet.write(self._row, index, value, self._formats[kind])
        self._row += 1

    def _end(self) -> None:
        self._sheet.autofilter(len(self._head), 0, max(self._row - 1, len(self._head)), len(self._columns) - 1)

    def close(self) -> None:
        import xlsxwriter.exceptions

        self._end()
        try:
            self._book.close()
        except xlsxwriter.exceptions.FileCreateError as error:
            raise OSError(str(error)) from error


class _OpenPyXl:
    def __init__(self, path: str, columns: Sequence[str], head: Dict[str, Any]) -> None:
        import openpyxl
        from openpyxl.cell import WriteOnlyCell
        from openpyxl.styles import Alignment, Font, PatternFill
        from openpyxl.utils import get_column_letter

        self._cell, self._letter = WriteOnlyCell, get_column_letter
        self._path, self._columns, self._head = path, columns, _head_lines(head)
        self._book = openpyxl.Workbook(write_only=True)
        self._bold, self._white = Font(bold=True, size=13), Font(bold=True, color="FFFFFF")
        self._top = Alignment(vertical="top")
        self._blue = PatternFill("solid", fgColor="305496")
        self._fills = {kind: PatternFill("solid", fgColor=colour) for kind, colour in COLOURS.items()}
        self._sheets = 0
        self._begin()

    def _begin(self) -> None:
        self._sheets += 1
        self._sheet = self._book.create_sheet("report" if self._sheets == 1 else f"report {self._sheets}")
        for index, column in enumerate(self._columns):
            self._sheet.column_dimensions[self._letter(index + 1)].width = _WIDTHS.get(column, 12)
        self._sheet.freeze_panes = f"E{len(self._head) + 2}"
        for line in self._head:
            self._sheet.append([self._styled(line, self._bold)])
        self._sheet.append([self._styled(column, self._white, self._blue) for column in self._columns])
        self._row = len(self._head) + 1

    def _styled(self, value: Any, font: Any = None, fill: Any = None) -> Any:
        cell = self._cell(self._sheet, value=value)
        if font is not None:
            cell.font = font
        if fill is not None:
            cell.fill = fill
        return cell

    def add(self, row: List[Any], kind: str) -> None:
        if self._row >= _MAX_ROWS:
            self._end()
            self._begin()
        self._sheet.append([self._styled(value, fill=self._fills[kind]) for value in row])
        self._row += 1

    def _end(self) -> None:
        self._sheet.auto_filter.ref = (
            f"A{len(self._head) + 1}:{self._letter(len(self._columns))}{max(self._row, len(self._head) + 1)}"
        )

    def close(self) -> None:
        self._end()
        self._book.save(self._path)
