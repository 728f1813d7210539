"""The sample catalogue through its tools: meaning, languages, filters, pages, freshness."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from groundhook import Host
from groundhook.core.tool_ports import ToolScope
from groundhook.core.types.collection_queries import (
    CollectionAnswer,
    CollectionMatch,
    CollectionQuery,
)
from groundhook.core.types.events import StreamEnd
from groundhook.core.types.sync import SyncStatus
from groundhook.toolkits.catalogue.answers import ResourceArguments
from groundhook.toolkits.catalogue.search import CatalogueSearch
from groundhook.toolkits.catalogue.settings import CatalogueSettings
from tests.tools.catalogue.conftest import REPOSITORY, found, names

QUESTIONS = REPOSITORY / "bench/toolkits/catalogue_questions.jsonl"
PACKAGES = REPOSITORY / "assistants/catalogue/data/packages.json"


async def test_datasets_are_found_by_meaning_and_have_exactly_these_keys(sample: Host) -> None:
    result = await found(sample, "searchDatasets", query="where can I plug in my vehicle")
    assert names(result)[0] == "charging-points"
    assert set(result) == {
        "success",
        "datasets",
        "total",
        "totalIs",
        "asOf",
        "message",
        "refinements",
    }
    assert result["success"] is True
    assert result["asOf"] == "2026-03-01T00:00:00+00:00"
    assert result["datasets"][0] | {"score": 1} == {
        "id": result["datasets"][0]["id"],
        "title": "Charging points for electric cars",
        "description": (
            "Public charging points with power, plug types, operator and opening hours."
        ),
        "organization": "energy-regulator",
        "organizationTitle": "Energy Regulator",
        "tags": ["electric cars", "energy"],
        "score": 1,
        "url": "https://data.example.org/dataset/charging-points",
        "modified": "2026-02-24T06:30:00Z",
        "formats": ["JSON", "CSV"],
        "frequency": "weekly",
        "overdue": False,
    }


async def test_a_question_finds_datasets_in_other_languages(sample: Host) -> None:
    """Every question of the bench: 40 in another language than the dataset, 14 in the same."""
    ranks: dict[str, list[int]] = {"cross": [], "same": []}
    for line in QUESTIONS.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        listed = names(await found(sample, "searchDatasets", query=case["question"]))
        right = [place for place, name in enumerate(listed, 1) if name in case["datasets"]]
        ranks[case["kind"]].append(min(right, default=0))
    among_five = {kind: sum(0 < rank <= 5 for rank in each) for kind, each in ranks.items()}
    assert len(ranks["cross"]) == 40
    assert among_five["cross"] >= 36
    assert sum(1 / rank for rank in ranks["cross"] if rank) / 40 >= 0.65
    assert ranks["same"].count(1) >= 13


async def test_results_that_are_hardly_similar_are_said_to_be_the_nearest(sample: Host) -> None:
    for tool in ("searchDatasets", "searchResources"):
        result = await found(sample, tool, query="xateqo pupa vahuqi")
        assert result["total"] > 0
        assert result["message"] == (
            "Nothing is very similar to the query: the first results may be near matches only, or"
            " in another language."
        )
        clear = await found(sample, tool, query="air quality")
        assert clear["message"] == ""


async def test_a_hebrew_question_returns_hebrew_titles_and_descriptions(sample: Host) -> None:
    result = await found(sample, "searchDatasets", query="בדיקות מעבדה של מי שתייה")
    first = result["datasets"][0]
    assert first["title"] == "איכות מי השתייה"
    assert "נקודת דיגום" in first["description"]


@pytest.mark.parametrize(
    "organization", ["energy-regulator", "Energy  regulator", "ENERGY REGULATOR "]
)
async def test_an_organization_is_a_filter_by_any_of_its_names(
    sample: Host, organization: str
) -> None:
    result = await found(
        sample, "searchDatasets", query="electricity", organization=organization, limit=50
    )
    assert {each["organization"] for each in result["datasets"]} == {"energy-regulator"}
    every = await found(sample, "searchDatasets", organization=organization, limit=50)
    assert every["total"] == len(every["datasets"]) == 5


async def test_all_tags_must_be_there(sample: Host) -> None:
    one = await found(sample, "searchDatasets", tag="Public Transport")
    assert sorted(names(one)) == ["bus-stops", "bus-timetables", "train-punctuality"]
    both = await found(sample, "searchDatasets", tags=["public transport", "bus"], query="stops")
    assert sorted(names(both)) == ["bus-stops", "bus-timetables"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"organization": "energy-regulater"}, "no organization 'energy-regulater' (did you mean"),
        ({"organization": "Energy"}, "no organization 'Energy' (did you mean 'energy regulator'?)"),
        ({"tag": "transport"}, "no tag 'transport' (did you mean 'public transport'?)"),
        ({"tag": "electrocity"}, "no tag 'electrocity' (did you mean 'electricity'?)"),
        ({"tag": "bus", "organization": "energy-regulator"}, "fulfils all of the filters"),
        ({"query": "qwxz jjkk", "tag": "bus"}, "similar enough"),
    ],
)
async def test_an_empty_answer_states_why(
    sample: Host, arguments: dict[str, Any], message: str
) -> None:
    result = await found(sample, "searchDatasets", **arguments)
    assert (result["success"], result["datasets"], result["total"]) == (True, [], 0)
    assert message in result["message"]


async def test_pages_together_are_the_whole(sample: Host) -> None:
    question = {"query": "people, and their health, work and schools"}
    whole = await found(sample, "searchDatasets", **question, limit=100)
    listed: list[str] = []
    for offset in range(0, whole["total"], 7):
        page = await found(sample, "searchDatasets", **question, limit=7, offset=offset)
        assert page["total"] == whole["total"]
        assert page["totalIs"] == "exact"
        listed += names(page)
    assert whole["total"] > 10
    assert Counter(listed) == Counter(names(whole))
    beyond = await found(sample, "searchDatasets", **question, offset=whole["total"])
    assert (beyond["datasets"], beyond["total"]) == ([], whole["total"])


async def test_without_a_query_datasets_come_newest_first(sample: Host) -> None:
    result = await found(sample, "searchDatasets", organization="statistics-office", limit=100)
    changed = [each["modified"] for each in result["datasets"]]
    assert changed == sorted(changed, reverse=True)
    assert {each["score"] for each in result["datasets"]} == {1.0}


async def test_refinements_count_the_whole_result(sample: Host) -> None:
    result = await found(
        sample, "searchDatasets", organization="city-of-oren", refine=True, limit=1
    )
    refinements = result["refinements"]
    assert refinements["organizations"] == [{"value": "city-of-oren", "count": 7}]
    assert {"value": "עירייה", "count": 5} in refinements["tags"]
    refined = await found(sample, "searchDatasets", query="bus stops", refine=True, limit=1)
    counted = sum(each["count"] for each in refined["refinements"]["organizations"])
    assert counted == refined["total"] > 1


async def test_a_dataset_that_should_have_been_updated_is_overdue(sample: Host) -> None:
    result = await found(sample, "searchDatasets", organization="water-board", limit=50)
    overdue = {each["url"].rpartition("/")[2]: each["overdue"] for each in result["datasets"]}
    assert overdue["beaches"] is True
    assert overdue["drinking-water"] is False
    zoning = await found(sample, "searchDatasets", query="land use plan zones", limit=1)
    assert zoning["datasets"][0]["overdue"] is None


async def test_resources_are_found_by_the_words_of_their_dataset(sample: Host) -> None:
    result = await found(sample, "searchResources", query="CSV files about education", limit=5)
    about = [(each["format"], each["datasetTitle"]) for each in result["resources"]]
    assert about[0][0] == "CSV"
    assert ("CSV", "בתי ספר ומספר התלמידים") in about  # in another language than the question
    assert set(result["resources"][0]) == {
        "id",
        "name",
        "url",
        "format",
        "description",
        "datasetId",
        "datasetTitle",
        "columns",
        "score",
    }


async def test_pages_of_a_question_that_names_a_format_are_the_whole(sample: Host) -> None:
    question = {"query": "GeoJSON map of places"}
    whole = await found(sample, "searchResources", **question, limit=100)
    listed: list[str] = []
    for offset in range(0, whole["total"], 9):
        page = await found(sample, "searchResources", **question, limit=9, offset=offset)
        scores = [each["score"] for each in page["resources"]]
        assert scores == sorted(scores, reverse=True)
        listed += [each["id"] for each in page["resources"]]
    assert Counter(listed) == Counter(each["id"] for each in whole["resources"])
    assert whole["resources"][0]["format"] == "GEOJSON"


class Many:
    """A collection of 1,300 files, of which every third is a PDF."""

    async def find(self, queries: Sequence[CollectionQuery], /) -> list[CollectionAnswer]:
        return [
            CollectionAnswer(
                matches=tuple(
                    CollectionMatch(
                        id=str(place),
                        collection="resources",
                        score=0.5,
                        fields={"format_keys": ["csv" if place % 3 else "pdf"]},
                    )
                    for place in range(query.offset, min(query.offset + query.limit, 1300))
                ),
                total=1000,
                total_is="at_least",
            )
            for query in queries
        ]


@pytest.mark.parametrize("offset", [0, 40, 950, 960, 1000])
async def test_no_page_of_a_question_that_names_a_format_is_shorter_than_it_must_be(
    offset: int,
) -> None:
    async def synced() -> SyncStatus:
        return SyncStatus(toolkit="catalogue")

    file = {"type": "catalogue", "source": {"file": "x.json"}}
    search = CatalogueSearch(CatalogueSettings.model_validate(file), "catalogue", synced)
    scope = cast(ToolScope, SimpleNamespace(collections=Many()))
    page = ResourceArguments(query="CSV files about schools", limit=100, offset=offset)
    assert len((await search.resources(page, scope)).resources) == 100


@pytest.mark.parametrize("written", ["csv", ".csv", "CSV ", "text/csv"])
async def test_a_format_is_a_filter_however_it_is_written(sample: Host, written: str) -> None:
    result = await found(sample, "searchResources", format=written, limit=100)
    packages = json.loads(PACKAGES.read_text(encoding="utf-8"))
    there = [each for package in packages for each in package["resources"]]
    assert result["total"] == sum(each["format"] == "CSV" for each in there)
    assert {each["format"] for each in result["resources"]} == {"CSV"}
    both = await found(sample, "searchResources", format=written, query="trees")
    assert {each["format"] for each in both["resources"]} == {"CSV"}


@pytest.mark.parametrize("written", ["excel", "Microsoft Excel", "spreadsheet"])
async def test_the_name_of_a_program_filters_all_of_its_formats(sample: Host, written: str) -> None:
    every = await found(sample, "searchResources", format="xlsx", limit=100)
    assert every["total"] > 0
    assert await found(sample, "searchResources", format=written, limit=100) == every
    both = await found(sample, "searchResources", format=written, query="trees")
    assert {each["format"] for each in both["resources"]} == {"XLSX"}


async def test_a_dataset_is_a_filter_by_its_id_and_its_name(sample: Host) -> None:
    by_name = await found(sample, "searchResources", datasetId="noise-map")
    assert names(by_name) == ["Noise by day", "Noise by night", "Report"]
    id = by_name["resources"][0]["datasetId"]
    assert await found(sample, "searchResources", datasetId=id) == by_name
    within = await found(sample, "searchResources", datasetId=id, query="report about noise")
    assert names(within)[0] == "Report"
    outcome = await sample.tool("catalogue.searchResources", {"datasetId": "noise-mup"})
    unknown = outcome.result
    assert (unknown["resources"], outcome.warnings) == ([], ())
    assert unknown["message"] == "There is no dataset 'noise-mup' (did you mean 'noise-map'?)."


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "give a query or a filter (organization, tag or tags)"),
        ({"query": " "}, "query"),
        ({"query": "x", "limit": 0}, "limit: between 1 and 100, not 0"),
        ({"query": "x", "limit": -1}, "limit"),
        ({"query": "x", "limit": 101}, "limit"),
        ({"query": "x", "limit": "ten"}, "limit"),
        ({"query": "x", "offset": 1001}, "offset"),
        ({"query": "x", "tags": "bus"}, "tags"),
        ({"query": "x", "tenant": "t"}, "tenant"),
        ({"query": "x" * 5000}, "query"),
    ],
)
async def test_wrong_arguments_are_named(
    sample: Host, arguments: dict[str, Any], words: str
) -> None:
    outcome = await sample.tool("catalogue.searchDatasets", arguments)
    assert outcome.result is None
    assert outcome.error is not None
    assert "wrong arguments" in outcome.error
    assert words in outcome.error


async def test_results_can_be_cited_and_schemas_name_no_identity(sample: Host) -> None:
    outcome = await sample.tool("catalogue.searchDatasets", {"query": "bus stops"})
    first = outcome.items[0]
    assert first.title == "Bus stops and shelters"
    assert first.url == "https://data.example.org/dataset/bus-stops"
    for tool in await sample.tools(assistant="catalogue"):
        assert not {"tenant", "user", "team", "owner"} & set(tool.parameters["properties"])
        assert tool.reads_only


@pytest.mark.parametrize(
    ("question", "dataset"),
    [
        ("Which data are there about public transport?", "bus-timetables"),
        ("באילו תחנות אוטובוס יש ספסל וסככה?", "bus-stops"),
        ("Where are data on olive groves and oil presses?", "olive-groves"),
    ],
)
async def test_the_assistant_answers_offline_and_cites_datasets(
    sample: Host, question: str, dataset: str
) -> None:
    async with sample.stream("catalogue", question) as events:
        final = [event async for event in events][-1]
    assert isinstance(final, StreamEnd)
    cited = [each.url.rpartition("/")[2] for each in final.citations]
    assert dataset in cited
    assert all(each.verdict == "ok" for each in final.citations)


async def test_the_sample_has_no_mistakes(sample: Host) -> None:
    assert [str(problem) for problem in await sample.check("catalogue")] == []
