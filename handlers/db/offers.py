"""What a question may be about: the models with their sampled values, as far as the identity may
see them."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from groundhook.core.errors import (
    NotPermitted,
    SourceError,
    SourceNotConfigured,
    SourceTimeout,
)
from groundhook.core.ports import Scope
from groundhook.core.types.model_spec import ModelSpec
from groundhook.handlers.db.model.schema import Field
from groundhook.handlers.db.permission import Permit, permit_for
from groundhook.handlers.db.query.dsl import QueryDSL
from groundhook.handlers.db.question.scope import OfferedModel
from groundhook.handlers.db.question.tokens import folded
from groundhook.handlers.db.question.values import phrases_to_look_up
from groundhook.handlers.db.question.vocabulary import Vocabulary
from groundhook.handlers.db.store import MAX_SAMPLES, SAMPLE_SECONDS, Samples, Store

NO_SAMPLES = Samples()  # of a table that cannot be read in time
EXAMPLE_ROWS = 3


class Offers:
    """Prepares the models of one database for the reading of a question."""

    def __init__(self, store: Store, models: Mapping[str, ModelSpec]) -> None:
        self._store, self._models = store, models
        self._rows: OrderedDict[tuple[str, Permit | None], tuple[float, list[dict[str, Any]]]] = (
            OrderedDict()
        )

    def permits(self, scope: Scope) -> Hashable:
        """Return the limits of the identity in all models, by which results may be kept."""
        return tuple(
            (id, permit_for(spec, scope.identity))
            for id, spec in self._models.items()
            if self._may_see(id, scope)
        )

    async def example_rows(
        self, models: Sequence[str], scope: Scope
    ) -> dict[str, list[dict[str, Any]]]:
        """Return a few rows of each model, as the identity may see them; none of a table that
        cannot be read in time."""
        found = {}
        for model in models:
            key = (model, permit_for(self._models[model], scope.identity))
            taken, rows = self._rows.get(key, (0.0, []))
            if time.monotonic() - taken > SAMPLE_SECONDS:
                query = QueryDSL(model=model, limit=EXAMPLE_ROWS)
                try:
                    rows = (await self._store.run(query, dict([key]), EXAMPLE_ROWS)).rows
                except SourceError:
                    rows = []
                self._rows[key] = (time.monotonic(), rows)
                while len(self._rows) > MAX_SAMPLES:
                    self._rows.popitem(last=False)
            found[model] = rows
        return found

    async def spellings(
        self, model: str, of: Field, text: str, scope: Scope
    ) -> tuple[list[str], list[str]]:
        """Return the spellings of a value in a field, and some values of the field, among the rows
        that the identity may see. A value that cannot be looked up in time counts as there."""
        samples = await self._sample_values(model, scope)
        counts = samples.counts.get(of.name, {})
        known = sorted(counts, key=lambda value: (-counts[value], value))
        same = [value for value in known if folded(value) == folded(text)]
        if same or of.name in samples.whole:
            return same, known
        permit = permit_for(self._models[model], scope.identity)
        try:
            found = await self._store.lookup(model, permit, samples, [text])
        except SourceTimeout:
            return [text], known
        return list(found.get(of.name, ())), known

    async def build(
        self,
        models: Sequence[str],
        first: Collection[str],
        question: str,
        words: Vocabulary,
        scope: Scope,
    ) -> AsyncGenerator[list[OfferedModel]]:
        """Yield the models that the identity may see, with their sampled values and those that the
        question names, without models whose tables are missing or differ: those of `first` alone,
        unless one of them is left out, then all. Raises NotPermitted or SourceNotConfigured if none
        is left."""
        offers: dict[str, OfferedModel] = {}
        texts, loaded = phrases_to_look_up(question, words), dict[str, OfferedModel]()
        failed: list[tuple[str, SourceNotConfigured | NotPermitted]] = []
        for at, model in enumerate(sorted(models, key=lambda one: one not in first)):
            if at == len(first):
                if offers and not failed:
                    yield list(offers.values())
                seen = (one for one in models if self._may_see(one, scope))
                permits = ((one, permit_for(self._models[one], scope.identity)) for one in seen)
                await self._store.sample_together(permits)
            try:
                permit_for(self._models[model], scope.identity)
                offers[model] = await self._build_offer(model, texts, loaded, scope)
            except (SourceNotConfigured, NotPermitted) as exc:
                failed.append((model, exc))
        if failed and not offers:
            raise failed[0][1]
        for model, why in failed:
            if isinstance(why, NotPermitted):
                await scope.warn(why.code, why.message)
            else:
                await scope.warn("db_model_skipped", f"{model!r} was not searched: {why}")
        yield [offers[model] for model in models if model in offers]

    async def _build_offer(
        self, model: str, texts: Sequence[str], loaded: dict[str, OfferedModel], scope: Scope
    ) -> OfferedModel:
        """Return a model with its sampled values and those of `texts` that are values too, and with
        those related models that the identity may see. `loaded` keeps what was read."""
        schema, related = self._store.schemas[model], {}
        for relation in schema.relations.values():
            if all(self._may_see(model, scope) for model in relation.models):
                try:
                    related[relation.name] = await self._load_values(
                        relation.model, texts, loaded, scope
                    )
                except SourceNotConfigured as exc:  # the related table is missing
                    await scope.warn(
                        "db_sample", f"{relation.name!r} of {model!r} was omitted: {exc.message}"
                    )
        return replace(await self._load_values(model, texts, loaded, scope), related=related)

    async def _load_values(
        self, model: str, texts: Sequence[str], loaded: dict[str, OfferedModel], scope: Scope
    ) -> OfferedModel:
        """Return a model with its sampled values and those of `texts` that are values too."""
        if model in loaded:
            return loaded[model]
        samples = await self._sample_values(model, scope)
        looked_up: Mapping[str, Sequence[str]] | None = None
        if samples is not NO_SAMPLES:
            permit = permit_for(self._models[model], scope.identity)
            try:
                looked_up = await self._store.lookup(model, permit, samples, texts)
            except SourceTimeout as exc:
                await scope.warn(
                    "db_sample",
                    f"the values of {model!r} are not all known: {exc.message} ({exc.hint})",
                )
        loaded[model] = OfferedModel(self._store.schemas[model], samples.counts, looked_up)
        return loaded[model]

    def _may_see(self, model: str, scope: Scope) -> bool:
        if model not in self._models:
            return False
        try:
            permit_for(self._models[model], scope.identity)
        except NotPermitted:
            return False
        return True

    async def _sample_values(self, model: str, scope: Scope) -> Samples:
        try:
            return await self._store.samples(model, permit_for(self._models[model], scope.identity))
        except NotPermitted:
            return NO_SAMPLES
        except SourceTimeout as exc:
            await scope.warn(
                "db_sample", f"the values of {model!r} could not be sampled: {exc.message}"
            )
            return NO_SAMPLES
