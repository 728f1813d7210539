"""Packages as documents: names, formats and frequencies as portals write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from groundhook.toolkits.catalogue.freshness import days_of, frequency_of, is_overdue
from groundhook.toolkits.catalogue.names import (
    format_key,
    format_keys,
    format_of,
    formats_in,
    key,
    nearest,
)
from groundhook.toolkits.catalogue.packages import LONGEST_TEXT, PackageReader
from groundhook.toolkits.catalogue.settings import CatalogueCollections
from tests.loopback.ckan import package

READER = PackageReader(collections=CatalogueCollections(), portal="https://data.example.org")


@pytest.mark.parametrize(
    "written", ["CSV", "csv", ".csv", "CSV ", " text/csv", "text/csv; charset=utf-8", "ＣＳＶ"]
)
def test_a_format_is_one_however_it_is_written(written: str) -> None:
    assert format_key(written) == "csv"


def test_formats_that_look_alike_are_not_the_same() -> None:
    assert len({format_key(each) for each in ("xls", "xlsx", "json", "geojson", "jsonl")}) == 5
    assert format_key("GeoJSON") == format_key("application/geo+json") == "geojson"
    assert format_key("ESRI Shapefile") == "shp"
    assert format_key("My Own") == "my own"


@pytest.mark.parametrize(
    ("resource", "format"),
    [
        ({"format": "csv"}, "CSV"),
        ({"format": "", "mimetype": "application/vnd.ms-excel"}, "XLS"),
        ({"url": "https://x.example.org/a/data.XLSX?v=2"}, "XLSX"),
        ({"url": "https://x.example.org/download"}, ""),
        ({"format": None}, ""),
    ],
)
def test_a_format_that_is_not_declared_follows_from_the_file(
    resource: dict[str, Any], format: str
) -> None:
    assert format_of(resource) == format


@pytest.mark.parametrize(
    ("written", "formats"),
    [
        ("Excel", {"xls", "xlsx"}),
        ("spreadsheets ", {"xls", "xlsx", "ods"}),
        ("XLSX", {"xlsx"}),
        ("application/vnd.ms-excel", {"xls"}),
        ("csv", {"csv"}),
    ],
)
def test_the_name_of_a_program_or_of_a_kind_of_file_is_all_of_its_formats(
    written: str, formats: set[str]
) -> None:
    assert set(format_keys(written)) == formats


NAMES = ["health", "health-ministry", "ministry of health", "ministry of war", "public transport"]


@pytest.mark.parametrize(
    ("wanted", "near"),
    [
        ("heal", "health"),
        ("health-min", "health-ministry"),
        ("ministry health", "health-ministry"),
        ("the ministry of war and peace", "ministry of war"),
        ("transport", "public transport"),
        ("helth", "health"),
        ("he", ""),
        ("-", ""),
        ("fisheries", ""),
    ],
)
def test_the_nearest_name_begins_alike_or_shares_words_or_else_letters(
    wanted: str, near: str
) -> None:
    assert nearest(wanted, NAMES) == near


def test_a_question_names_formats_only_by_their_words() -> None:
    assert formats_in("CSV files about education") == ({"csv"}, "files about education")
    assert formats_in("Excel or Geo JSON map") == ({"xls", "xlsx", "geojson"}, "or map")
    assert formats_in("Spreadsheets of trees") == ({"xls", "xlsx", "ods"}, "of trees")
    assert formats_in("Excel 2007 lists") == ({"xlsx"}, "lists")
    assert formats_in("קבצי CSV על חינוך") == ({"csv"}, "קבצי על חינוך")
    assert formats_in("csv") == ({"csv"}, "csv")
    assert formats_in("text of the word csvs and shapes")[0] == set()


def test_names_are_compared_without_case_blanks_and_width() -> None:
    assert key("  Ministry  of\u00a0HEALTH ") == key("ministry of health")


def test_a_dataset_says_what_its_package_says() -> None:
    extra = {"key": "Update-Frequency", "value": "monthly"}
    documents = READER.documents(package(3, extras=[extra]))
    (dataset,) = documents["datasets"]
    assert dataset.title == "Dataset 3"
    assert dataset.url == "https://data.example.org/dataset/dataset-3"
    assert dataset.fields["organization"] == "statistics"
    assert dataset.fields["organization_keys"] == ["statistics", "office of statistics", "o1"]
    assert dataset.fields["formats"] == ["CSV", "PDF"]
    assert dataset.fields["frequency"] == "monthly"
    assert "Office of Statistics: " in dataset.text
    assert "File 0 of 3 (CSV), " in dataset.text


def test_a_resource_carries_the_words_of_its_dataset() -> None:
    resource = READER.documents(package(3))["resources"][0]
    assert "Figures of series 3." in resource.text
    assert "figures" in resource.text
    assert resource.fields["dataset_keys"] == [package(3)["id"], "dataset-3"]
    assert resource.fields["address"] == resource.url == "https://files.example.org/3/0.csv"


def test_an_answer_can_quote_every_paragraph_as_a_sentence() -> None:
    (dataset,) = READER.documents(package(3))["datasets"]
    assert all(part.endswith(".") for part in dataset.text.split("\n\n")[1:])


def test_an_address_is_kept_as_it_is_and_linked_only_where_it_can_be() -> None:
    odd = "ftp://files.example.org/a b.csv"
    resource = READER.documents(package(1, resources=[{"id": "r", "url": odd}]))["resources"][0]
    assert (resource.fields["address"], resource.url) == (odd, "")


def test_translations_are_part_of_the_text() -> None:
    translated = {"en": "Dataset 1", "he": "מערך נתונים", "ar": "بيانات"}
    (dataset,) = READER.documents(package(1, title_translated=translated))["datasets"]
    assert dataset.text.startswith("Dataset 1\n\nמערך נתונים\n\nبيانات")


@pytest.mark.parametrize(
    "broken",
    [
        {"organization": None, "tags": None, "resources": None, "notes": None},
        {"title": "", "name": ""},
        {"resources": [None, {}, {"id": "r", "state": "deleted"}, {"id": "s", "url": None}]},
        {"tags": ["plain"], "extras": ["x", {"key": None}], "title_translated": ["x"]},
        {"notes": "long " * 9000, "title": "a\0b"},
        {"resources": [{"id": "r", "url": "https://[not yet]/a.csv"}], "name": "half \ud800"},
        {"resources": 5, "tags": True, "extras": 0.5},
    ],
)
def test_whatever_a_portal_leaves_out_makes_documents(broken: dict[str, Any]) -> None:
    documents = READER.documents(package(1, **broken))
    for document in (*documents["datasets"], *documents["resources"]):
        assert document.fields["dataset_title"]
        assert document.text
        assert len(document.text) <= LONGEST_TEXT
        assert "\0" not in document.text


def test_unseen_characters_of_a_portal_are_in_no_document() -> None:
    hostile = "\x00tram\u202e\x1b[31m\u2066s"
    address = f"https://x.example.org/{hostile}"
    resource = {"id": "r", "name": hostile, "url": address, "format": hostile}
    about = {
        "title": hostile,
        "frequency": hostile,
        "notes": hostile,
        "title_translated": {"he": f"{hostile} x"},
    }
    columns = {"columns": [hostile]}
    made = READER.documents(package(1, **about, resources=[{**resource, **columns}]))
    text = repr(made)
    assert "tram[31ms" in text
    assert not re.search(r"\\x|\\u2", text)


def test_a_record_differs_when_its_package_does() -> None:
    same = READER.record(package(1)).digest
    assert READER.record(package(1, tracking_summary={"total": 1})).digest == same
    assert READER.record(package(1, notes="other")).digest != same
    other = PackageReader(collections=CatalogueCollections(), tenant="t")
    assert other.record(package(1)).digest != same


@pytest.mark.parametrize(
    ("frequency", "days"),
    [
        ("daily", 1),
        ("Weekly ", 7),
        ("חודשי", 31),
        ("سنوي", 366),
        ("P1M", 31),
        ("R/P1Y", 366),
        ("http://publications.europa.eu/resource/authority/frequency/QUARTERLY", 92),
        ("now and then", None),
        ("P9999999Y", None),
        pytest.param("P" + "9" * 5000 + "D", None, id="long"),
        ("", None),
    ],
)
def test_frequencies_are_read_in_the_words_of_portals(frequency: str, days: int | None) -> None:
    assert days_of(frequency) == days


def test_a_dataset_is_overdue_half_a_period_after_its_time() -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    assert is_overdue("2026-02-20T00:00:00", "weekly", now) is False
    assert is_overdue("2026-02-10T00:00:00Z", "weekly", now) is True
    assert is_overdue("2026-02-10", "sometimes", now) is None
    assert is_overdue("", "weekly", now) is None
    assert frequency_of({"frequency": "annual"}) == "annual"
