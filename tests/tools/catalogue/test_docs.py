"""The page of the catalogue: its example does what it shows, and it names every setting."""

from __future__ import annotations

import re
from pathlib import Path

from groundhook.core.types.sync import SyncSettings
from groundhook.toolkits.catalogue.answers import (
    Dataset,
    DatasetArguments,
    DatasetResource,
    DatasetsFound,
    ResourceArguments,
)
from groundhook.toolkits.catalogue.settings import CatalogueSettings, CatalogueSource
from tests.parts.tutorial import follow
from tests.tools.catalogue.conftest import REPOSITORY

PAGE = (REPOSITORY / "docs/toolkits/catalogue.md").read_text(encoding="utf-8")


def test_everything_that_the_page_shows_happens(tmp_path: Path) -> None:
    assert follow(PAGE, tmp_path) >= 7


def test_the_page_names_every_setting_argument_and_key() -> None:
    named = set(re.findall(r"\w+", PAGE))
    models = (
        *(CatalogueSource, SyncSettings, CatalogueSettings, DatasetArguments),
        *(ResourceArguments, DatasetsFound, Dataset, DatasetResource),
    )
    fields = {name for model in models for name in model.model_fields}
    assert fields - named == {"label", "deadline_ms"}
