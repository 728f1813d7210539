"""Judges what a question that was read found: one answer, or a decline that says why. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from groundhook.core.ports import SourceResult
from groundhook.core.types.search import OtherReading, SearchAccount
from groundhook.handlers.db.by_model.reader import ModelReading
from groundhook.handlers.db.query.dsl import QueryDSL
from groundhook.handlers.db.question.forms import QueryReading
from groundhook.handlers.db.question.reading import Reads, explain, notes_of
from groundhook.handlers.db.question.scope import OfferedModel
from groundhook.handlers.db.question.sentence import Teller
from groundhook.handlers.db.question.tokens import MOST_TOKENS

BUILTIN = "builtin"
MOST_SHOWN = 3  # other readings


@dataclass(frozen=True)
class JudgedAnswer:
    """A reading, the query that was run for it, and what was found."""

    reading: QueryReading
    query: QueryDSL
    found: SourceResult

    @property
    def empty(self) -> bool:
        """Whether nothing was found, or only a figure over no records. No record is an answer to
        "how many", but not where the year had to be guessed."""
        counted = self.query.aggregates[:1]
        of_all = counted and counted[0].function == "count" and not self.query.groups
        if of_all and not self.reading.yearless:
            return False
        return not any(item.query.rows if item.query else True for item in self.found.items)

    @property
    def signature(self) -> str:
        """Equal for readings with the same results; those without any, of the same model."""
        items = self.found.items
        shown = [
            repr(sorted(map(repr, (item.data or {}).values())) if item.query else item.key)
            for item in items
        ]
        # None of the doctors are not none of the patients.
        model = "" if items else self.query.model
        return repr((self.found.total, shown if self.query.orders else sorted(shown), model))


def declined(reads: Reads, teller: Teller, offers: Sequence[OfferedModel]) -> SearchAccount:
    """Return the account of a question that was not understood."""
    return SearchAccount(
        certainty="none",
        unread=reads.unread,
        read_by=BUILTIN,
        explanation=explain(reads, teller, offers),
    )


def judged(reads: Reads, answers: Sequence[JudgedAnswer], teller: Teller) -> SourceResult:
    """Return the one result of all readings, or a decline where they differ, or where the question
    assumes something that is not there."""
    different = {answer.signature: answer for answer in reversed(answers)}
    if len(different) > 1:
        return _several(list(reversed(different.values())), teller)
    answer = next((each for each in answers if not each.reading.notes), answers[0])
    read_as = teller.sentence(answer.query)
    account = SearchAccount(certainty="sure", read_as=read_as, read_by=BUILTIN)
    if answer.empty and (
        answer.reading.presumes or answer.reading.yearless or answer.query.aggregates
    ):
        form = "no_year" if answer.reading.yearless else "none_found"
        said = teller.phrase(form, reading=read_as)
        refused = account.model_copy(update={"certainty": "none", "explanation": said})
        return SourceResult(total=0, dsl=answer.found.dsl, account=refused)
    if notes := _notes(reads, answer, teller):
        unread = (*answer.reading.idle, *(reads.corrected or ()))
        account = account.model_copy(
            update={"certainty": "partial", "unread": unread, "explanation": " ".join(notes)}
        )
    elif not answer.found.total:
        said = teller.phrase("no_rows", reading=read_as)
        account = account.model_copy(update={"explanation": said})
    return replace(answer.found, account=account)


def _notes(reads: Reads, answer: JudgedAnswer, teller: Teller) -> list[str]:
    """Return what is not certain of an answer, as sentences for readers."""
    notes = notes_of(answer.reading, teller, teller.schemas[answer.query.model])
    for word, meant in (reads.corrected or {}).items():
        both = {"word": teller.quoted([word]), "meant": teller.quoted([meant])}
        notes.append(teller.phrase("read_word", **both))
    if reads.cut:
        notes.append(teller.phrase("too_long", count=MOST_TOKENS))
    return notes


def read_by_model(result: SourceResult, by: str, asked: str) -> SourceResult:
    """Return a result as a language model's; a question back comes before the readings."""
    account = result.account.model_copy(update={"read_by": by})
    if account.readings and asked:
        account = account.model_copy(update={"explanation": f"{asked} {account.explanation}"})
    return replace(result, account=account)


def refused_by_model(reading: ModelReading, by: str, teller: Teller) -> SearchAccount:
    """Return the account of a question that a language model does not answer, or whose query names
    values that no record has."""
    account = SearchAccount(certainty="none", read_by=by, explanation=reading.said)
    if not reading.unknown:
        return account
    read_as = teller.sentence(reading.queries[0])
    said = [teller.phrase("none_found", reading=read_as)]
    near = [value for each in reading.unknown for value in each.near]
    if near:
        said.append(teller.phrase("near", words=teller.quoted(near)))
    unread = tuple(dict.fromkeys(each.value for each in reading.unknown))
    update = {"read_as": read_as, "unread": unread, "explanation": " ".join(said)}
    return account.model_copy(update=update)


def sentences(answers: Sequence[JudgedAnswer], teller: Teller) -> dict[str, JudgedAnswer]:
    """Return answers by the sentences of their queries; the same sentence about several models says
    of which."""
    texts = [teller.sentence(answer.query) for answer in answers]
    models = [teller.schemas[answer.query.model].name for answer in answers]
    return {
        f"{text} ({model})" if texts.count(text) > 1 else text: answer
        for text, model, answer in zip(texts, models, answers, strict=True)
    }


def _several(answers: Sequence[JudgedAnswer], teller: Teller) -> SourceResult:
    readings = tuple(
        OtherReading(read_as=text, total=answer.found.total)
        for text, answer in list(sentences(answers, teller).items())[:MOST_SHOWN]
    )
    listed = "; ".join(f"{each.read_as} ({each.total})" for each in readings)
    account = SearchAccount(
        certainty="none",
        readings=readings,
        read_by=BUILTIN,
        explanation=f"{teller.say['several']} {listed}",
    )
    return SourceResult(total=0, account=account)
