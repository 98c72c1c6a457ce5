"""What LibreOffice makes of a workbook once its inputs were changed; no value of the file itself is read."""

import re
import shutil
import subprocess

import openpyxl

OFFICE = shutil.which("soffice")

TOLERANCE = 1e-9


def changed(source, target, inputs):
    """Save a workbook with other inputs; openpyxl keeps formulas alone, so every value must be computed.

    An input is a defined name, or a cell such as ``Sensitivity!B2``.
    """
    book = openpyxl.load_workbook(source)
    for name, value in inputs.items():
        sheet, _, cell = name.rpartition("!")
        if not sheet:
            sheet, cell = next(iter(book.defined_names[name].destinations))
        book[sheet][cell.replace("$", "")] = value
    book.save(target)


def recalculated(paths, folder):
    """Return where each workbook lies as LibreOffice computes it; one run of it takes them all."""
    profile = folder / "profile"
    subprocess.run(
        [
            OFFICE,
            f"-env:UserInstallation=file://{profile}",
            "--headless",
            "--convert-to",
            "xlsx:Calc MS Excel 2007 XML",
            "--outdir",
            str(folder / "computed"),
            *map(str, paths),
        ],
        check=True,
        capture_output=True,
        timeout=60 + 30 * len(paths),
    )
    return [folder / "computed" / path.name for path in paths]


def figures(book):
    """Return each figure of the sheets, the tiers' table apart, under the key that the JSON of a plan has."""
    found = {}
    for name in ("Answers", "KV", "Memory", "Speed", "Fleet", "Eviction"):
        for row in book[name].iter_rows(min_row=4, values_only=True):
            if row[3]:
                found[row[3]] = row[1]
    return found


def tiers(book):
    """Return the table of tiers: (tier, mode) -> figure -> value."""
    rows = list(book["Restore"].iter_rows(min_row=3, values_only=True))
    columns = [(place, head) for place, head in enumerate(rows[0]) if head and place > 1 and head != "Key"]
    found = {}
    for place, head in columns:
        tier, _, mode = head.rpartition(" (")
        found[tier, mode[:-1].replace(" ", "_")] = {
            row[-1].removeprefix("offload[]."): row[place] for row in rows[1:] if row[-1]
        }
    return found


def errors(book):
    """Return the cells that show an error."""
    return [
        (sheet.title, cell.coordinate, cell.value)
        for sheet in book
        for row in sheet.iter_rows()
        for cell in row
        if isinstance(cell.value, str) and re.match(r"#(N/A|VALUE|REF|DIV|NUM|NAME|NULL)|Err:", cell.value)
    ]


def at(body, key):
    """Return the value at a key such as ``kv.components[0].bytes``; a row of offload has tier and mode."""
    for tier, mode, name in re.findall(r"\[tier=(.*?),mode=(\w+)\]|([^.\[\]]+)", key):
        if body is None:
            return None
        if tier:
            body = next((row for row in body if (row["tier"], row["mode"]) == (tier, mode)), None)
        else:
            # A list may be shorter in one answer than in another: its cell is blank then.
            short = isinstance(body, list) and int(name) >= len(body)
            body = None if short else body[int(name) if isinstance(body, list) else name]
    return body


def differs(shown, expected):
    """Tell a cell that does not say what the plan says; JSON has null for no value and for no end."""
    if expected is None:
        endless = isinstance(shown, (int, float)) and abs(shown) == float("inf")
        return not (shown in (None, "", "unlimited") or endless)
    if isinstance(expected, (bool, str)) or not isinstance(shown, (int, float)):
        return ("" if shown is None else shown) != expected
    return abs(shown - expected) > TOLERANCE * max(abs(expected), abs(shown))


def compared(book, body):
    """Return (how many figures were compared, those that differ)."""
    wrong, count = [], 0
    for key, shown in figures(book).items():
        count += 1
        expected = at(body, key)
        if differs(shown, expected):
            wrong.append((key, shown, expected))
    rows = {(row["tier"], row["mode"]): row for row in body["offload"]}
    for place, shown in tiers(book).items():
        row = rows.pop(place, None)
        for name, value in shown.items():
            count += 1
            expected = None if row is None else at(row, name)
            if differs(value, expected):
                wrong.append((place, name, value, expected))
    return count, wrong + [("missing", place) for place in rows]
