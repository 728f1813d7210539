"""Charts and diagrams of Office files: their titles, categories, series and values are text."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

import pytest

from groundhook.handlers.kb.reading import drawn
from groundhook.handlers.kb.reading.files import read
from tests.parts import docx_files
from tests.parts.workbooks import OFFICE, PACKAGE, packed, workbook

CHART = "http://schemas.openxmlformats.org/drawingml/2006/chart"
DRAWN = "http://schemas.openxmlformats.org/drawingml/2006/main"
DIAGRAM = "http://schemas.openxmlformats.org/drawingml/2006/diagram"


def title(text: str) -> str:
    run = f"<a:p><a:r><a:t>{escape(text)}</a:t></a:r></a:p>"
    return f"<c:title><c:tx><c:rich>{run}</c:rich></c:tx></c:title>" if text else ""


def points(kind: str, texts: Sequence[object], *, code: str = "", first: int = 0) -> str:
    form = f"<c:formatCode>{code}</c:formatCode>" if code else ""
    found = "".join(
        f'<c:pt idx="{at}"><c:v>{text}</c:v></c:pt>' for at, text in enumerate(texts, first)
    )
    return f"<c:{kind}><c:numRef><c:numCache>{form}{found}</c:numCache></c:numRef></c:{kind}>"


def chart(series: str, *, named: str = "", across: str = "", upright: str = "") -> str:
    return (
        f'<c:chartSpace xmlns:c="{CHART}" xmlns:a="{DRAWN}"><c:chart>{title(named)}<c:plotArea>'
        f"<c:barChart>{series}</c:barChart><c:catAx>{title(across)}</c:catAx>"
        f"<c:valAx>{title(upright)}</c:valAx></c:plotArea></c:chart></c:chartSpace>"
    )


def one_series(name: str, categories: str, values: Sequence[object]) -> str:
    return f"<c:ser>{points('tx', [name])}{categories}{points('val', values)}</c:ser>"


def related(**targets: str) -> str:
    links = "".join(
        f'<Relationship Id="{id}" Type="{OFFICE}/{target.split()[0]}" Target="{target.split()[1]}"/>'
        for id, target in targets.items()
    )
    return f'<Relationships xmlns="{PACKAGE}">{links}</Relationships>'


def slide(drawing: str, parts: Mapping[str, str], **targets: str) -> str:
    return read(
        packed(
            {
                "ppt/slides/slide1.xml": (
                    f'<s xmlns:a="{DRAWN}" xmlns:c="{CHART}" xmlns:d="{DIAGRAM}" xmlns:r="{OFFICE}">'
                    f"<a:p><a:r><a:t>Sales</a:t></a:r></a:p>{drawing}</s>"
                ),
                "ppt/slides/_rels/slide1.xml.rels": related(**targets),
                **parts,
            }
        ),
        "a.pptx",
    ).text


def test_a_chart_on_a_slide_is_its_title_and_a_row_for_each_category() -> None:
    quarters = points("cat", ["Q1", "Q2", "Q3"])
    series = one_series("North", quarters, [4.3, 12]) + one_series("South", quarters, [2, 0.1, 7])
    shown = chart(series, named="Sales by region", across="Quarter", upright="Million EUR")
    text = slide(
        '<c:chart r:id="r1"/>', {"ppt/charts/chart1.xml": shown}, r1="chart ../charts/chart1.xml"
    )
    assert text.split("\n\n")[1:-1] == [
        "Sales by region (Million EUR)",
        "Quarter | North | South",
        "Q1 | 4.3 | 2",
        "Q2 | 12 | 0.1",
        "Q3 |  | 7",
    ]


def test_levels_of_categories_and_days_are_read_as_a_chart_shows_them() -> None:
    level = "<c:lvl>{}</c:lvl>"
    towns = "".join(f'<c:pt idx="{at}"><c:v>{town}</c:v></c:pt>' for at, town in enumerate("xyz"))
    lands = '<c:pt idx="0"><c:v>A</c:v></c:pt><c:pt idx="2"><c:v>B</c:v></c:pt>'
    levels = f"<c:cat>{level.format(towns)}{level.format(lands)}</c:cat>"
    days = points("cat", [45292, 45293], code="[$-409]d-mmm-yy")
    shown = chart(one_series("In", levels, [1, 2, 3]) + one_series("Out", days, [5, 6]))
    text = slide(
        '<c:chart r:id="r1"/>', {"ppt/charts/chart1.xml": shown}, r1="chart ../charts/chart1.xml"
    )
    assert text.split("\n\n")[1:-1] == [
        *(" | In", "A x | 1", "A y | 2", "B z | 3"),
        *(" | Out", "2024-01-01 | 5", "2024-01-02 | 6"),
    ]


def test_a_diagram_is_the_texts_of_its_boxes() -> None:
    def box(text: str, kind: str = "") -> str:
        paragraph = f"<a:p><a:r><a:t>{text}</a:t></a:r></a:p>"
        return f"<d:pt{kind}><d:t>{paragraph}</d:t></d:pt>"

    model = box("Plan") + box("[Text]", ' type="pres"') + box("Build")
    text = slide(
        '<d:relIds r:dm="r1"/>',
        {"ppt/diagrams/data1.xml": f'<d:m xmlns:d="{DIAGRAM}" xmlns:a="{DRAWN}">{model}</d:m>'},
        r1="diagramData ../diagrams/data1.xml",
    )
    assert text.split("\n\n")[1:-1] == ["Plan", "Build"]


def test_a_chart_in_a_text_follows_its_paragraph_as_a_table() -> None:
    shown = chart(one_series("Fee", points("cat", ["small", "large"]), [12, 19]), named="Fees")
    body = (
        "<w:p><w:r><w:t>Before</w:t></w:r><w:r><w:drawing>"
        f'<c:chart xmlns:c="{CHART}" xmlns:r="{OFFICE}" r:id="rId7"/></w:drawing></w:r></w:p>'
        "<w:p><w:r><w:t>After</w:t></w:r></w:p>"
    )
    with zipfile.ZipFile(io.BytesIO(docx_files.packed(body))) as parts:
        files = {part.filename: parts.read(part).decode() for part in parts.infolist()}
    files["word/charts/chart1.xml"] = shown
    files["word/_rels/document.xml.rels"] = files["word/_rels/document.xml.rels"].replace(
        "</Relationships>",
        f'<Relationship Id="rId7" Type="{OFFICE}/chart" Target="charts/chart1.xml"/></Relationships>',
    )
    text = read(packed(files), "a.docx").text
    table = "|  | Fee |\n| --- | --- |\n| small | 12 |\n| large | 19 |"
    assert text.split("\n\n")[:4] == ["Before", "Fees", table, "After\n"]


def test_a_chart_in_a_workbook_adds_to_its_sheet_what_no_cell_says() -> None:
    book = workbook({"Fees": [["Size", "Fee"], ["small", 12]]})
    with zipfile.ZipFile(io.BytesIO(book)) as parts:
        files = {part.filename: parts.read(part).decode() for part in parts.infolist()}
    shown = chart(one_series("Fee", "", [12]), named="Fees of 2026", upright="EUR")
    files |= {
        "xl/worksheets/_rels/sheet1.xml.rels": related(r1="drawing ../drawings/drawing1.xml"),
        "xl/drawings/_rels/drawing1.xml.rels": related(r1="chart ../charts/chart1.xml"),
        "xl/charts/chart1.xml": shown,
    }
    text = read(packed(files), "a.xlsx").text
    assert text.endswith("| small | 12 |\n\nChart: Fees of 2026; EUR; Fee")


def test_a_chart_is_read_once_and_up_to_a_number_of_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawn, "_MOST_CELLS", 100)
    categories = points("cat", range(20))
    series = "".join(one_series(f"s{at}", categories, range(20)) for at in range(20))
    text = slide(
        '<c:chart r:id="r1"/><c:chart r:id="r2"/>' * 2,
        {"ppt/charts/chart1.xml": chart(series)},
        r1="chart ../charts/chart1.xml",
        r2="chart ../charts/chart1.xml",
    )
    assert text.count(" | ") == 6 * 20
