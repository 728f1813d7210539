"""What a question may be about: the models with their sampled values, as far as the identity may
see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from groundhook.core.errors import NotPermitted, SourceNotConfigured, SourceTimeout
from groundhook.core.ports import Scope
from groundhook.core.types.model_spec import ModelSpec
from groundhook.handlers.db.permission import permit_for
from groundhook.handlers.db.question.question import phrases_to_look_up
from groundhook.handlers.db.question.scope import OfferedModel
from groundhook.handlers.db.question.vocabulary import Vocabulary
from groundhook.handlers.db.store import Samples, Store

NO_SAMPLES: Samples = {}  # a single object, since lexicons are cached by the identity of samples


class Offers:
    """Prepares the models of one database for the reading of a question."""

    def __init__(self, store: Store, models: Mapping[str, ModelSpec]) -> None:
        self._store, self._models = store, models

    async def build(
        self, models: Sequence[str], question: str, words: Vocabulary, scope: Scope
    ) -> list[OfferedModel]:
        """Return the models that the identity may see, with their sampled values and those that the
        question names, without models whose tables are missing or differ. Raises NotPermitted or
        SourceNotConfigured if none is left."""
        offers: list[OfferedModel] = []
        texts, loaded = phrases_to_look_up(question, words), dict[str, OfferedModel]()
        failed: list[tuple[str, SourceNotConfigured | NotPermitted]] = []
        for model in models:
            try:
                permit_for(self._models[model], scope.identity)
                offers.append(await self._build_offer(model, texts, loaded, scope))
            except (SourceNotConfigured, NotPermitted) as exc:
                failed.append((model, exc))
        if failed and not offers:
            raise failed[0][1]
        for model, why in failed:
            if isinstance(why, NotPermitted):
                await scope.warn(why.code, why.message)
            else:
                await scope.warn("db_model_skipped", f"{model!r} was not searched: {why}")
        return offers

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
        looked_up: Mapping[str, Sequence[str]] = {}
        if samples is not NO_SAMPLES:
            permit = permit_for(self._models[model], scope.identity)
            try:
                looked_up = await self._store.lookup(model, permit, samples, texts)
            except SourceTimeout as exc:
                await scope.warn(
                    "db_sample",
                    f"the values of {model!r} could not be looked up: {exc.message}"
                    " (an index on the columns that questions name makes this fast)",
                )
        loaded[model] = OfferedModel(self._store.schemas[model], samples, looked_up)
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
