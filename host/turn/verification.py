"""The verification of an answer: what `uses.verify` names says of each sentence that cites whether
its sources support it. A failed verifier is a warning, and never ends a turn.

A source is a stranger's text, which may ask for a verdict. So a request has only sentences that
cite the same sources, and these sources: a text speaks of no sentence but its own. The ids of
sentences are random, and a positive verdict counts only with words that are in a source. No verdict
hides a fact that the sources lack (`host.search.citations.claims`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import anyio

from groundhook.core.errors import HostError
from groundhook.core.settings import DISABLED
from groundhook.core.trace import span
from groundhook.core.types.delegation import (
    VerifyAnswer,
    VerifyAsk,
    VerifySentence,
    VerifySource,
)
from groundhook.core.types.events import VerifiedSentence
from groundhook.core.types.search import Item
from groundhook.core.types.uses import VERIFY
from groundhook.host.search.citations.claims import CitedSentence, with_verdict
from groundhook.host.search.citations.facts import flat
from groundhook.host.turn.answer import GrowingAnswer
from groundhook.host.turn.run import AssistantRun

MOST_AT_ONCE = 4  # requests
MOST_SENTENCES = 10  # of a request
MOST_SOURCES = 6  # of a sentence; later ones are not sent
LONGEST_SOURCE = 12_000  # characters of a source that are sent
LONGEST_QUESTION = 1000
LONGEST_SHOWN = 300  # characters of a sentence or a quote in an event
SHORTEST_QUOTE = 8  # characters, unless the source itself is shorter


def verifier_of(run: AssistantRun) -> str:
    """Return what verifies the answers of this run; empty where nothing does."""
    by = run.settings.uses.verify
    # The answer of a delegated step is for a program, which checks it.
    return "" if by in ("builtin", DISABLED) or run.request.reply is not None else by


async def verify_answer(run: AssistantRun, by: str) -> None:
    """Ask the verifier about the sentences of the answer, and add its verdicts to the claims and
    the citations."""
    settings, sentences = run.settings.search.verify, run.answer.checked.cited
    verification = _Verification(run, by)
    requests = list(_requests(sentences[: settings.max_sentences]))
    if not requests:
        return
    with span("verify", by, sentences=len(sentences), requests=len(requests)) as node:
        places = anyio.CapacityLimiter(MOST_AT_ONCE)
        ends = anyio.current_time() + settings.timeout_ms / 1000

        async def ask(group: Sequence[CitedSentence]) -> None:
            async with places:
                await verification.ask(group, ends - anyio.current_time())

        async with anyio.create_task_group() as tasks:
            for group in requests:
                tasks.start_soon(ask, group)
        found = verification.found
        node.data.update(
            verified=sum(verdict.supported for _, verdict in found),
            unsupported=sum(not verdict.supported for _, verdict in found),
        )
        if verification.failures:
            node.fail(str(verification.failures[0]))
    _add_verdicts(run.answer, found)
    if verification.failures:
        first = verification.failures[0]
        left = min(len(sentences), settings.max_sentences) - len(found)
        await run.searcher.scope.warn(first.code, f"{first}; sentences not verified: {left}")


def _add_verdicts(
    answer: GrowingAnswer, found: Sequence[tuple[CitedSentence, VerifiedSentence]]
) -> None:
    counts = answer.checked.claims
    for sentence, verdict in found:
        counts = with_verdict(counts, sentence, supported=verdict.supported)
        for marker in sentence.markers:
            so_far = answer.cited[marker]
            verified = (*so_far.verified, verdict)
            answer.cited[marker] = so_far.model_copy(update={"verified": verified})
    answer.checked = replace(answer.checked, claims=counts)


def _requests(sentences: Sequence[CitedSentence]) -> Iterator[Sequence[CitedSentence]]:
    """Yield the sentences of each request: those that cite the same sources."""
    groups: dict[tuple[str, ...], list[CitedSentence]] = {}
    for sentence in sentences:
        groups.setdefault(tuple(sorted(sentence.markers)), []).append(sentence)
    for group in groups.values():
        for at in range(0, len(group), MOST_SENTENCES):
            yield group[at : at + MOST_SENTENCES]


@dataclass
class _Verification:
    """The requests for one answer, and what came of them."""

    run: AssistantRun
    by: str
    found: list[tuple[CitedSentence, VerifiedSentence]] = field(default_factory=list)
    failures: list[HostError] = field(default_factory=list)

    async def ask(self, group: Sequence[CitedSentence], seconds: float) -> None:
        """Ask about sentences that cite the same sources."""
        run = self.run
        cited = [run.answer.items[marker] for marker in group[0].markers]
        token = run.runtime.randomness.token(6)
        ids = {f"{token}{n}": sentence for n, sentence in enumerate(group, 1)}
        sources = [_source(item) for item in cited[:MOST_SOURCES]]
        request = VerifyAsk(
            question=run.question[:LONGEST_QUESTION],
            sentences=tuple(
                VerifySentence(id=id, text=each.text, before=each.before)
                for id, each in ids.items()
            ),
            sources=tuple(sources),
        )
        try:
            answer = await run.searcher.scope.delegates.ask(
                VERIFY,
                self.by,
                request,
                timeout_ms=max(1, round(seconds * 1000)),
                hint="search.verify.timeout_ms",
                tries=1,
            )
        except HostError as exc:
            self.failures.append(exc)
            return
        whole = len(cited) <= MOST_SOURCES and all(
            len(each.text) < LONGEST_SOURCE for each in sources
        )
        texts = [flat(f"{each.title}\n{each.text}") for each in sources]
        self.found += _judge(ids, answer, texts, whole=whole)


def _judge(
    ids: Mapping[str, CitedSentence],
    answer: VerifyAnswer,
    texts: Sequence[str],
    *,
    whole: bool,
) -> Iterator[tuple[CitedSentence, VerifiedSentence]]:
    """Yield the sentences with the verdicts that count: a positive one with words of a source, and
    a negative one if the verifier had the `whole` sources."""
    for id, sentence in ids.items():
        verdicts = [each for each in answer.verdicts if each.id == id]
        shown = sentence.text[:LONGEST_SHOWN]
        if any(not each.supported for each in verdicts):
            if whole:
                yield sentence, VerifiedSentence(sentence=shown, supported=False)
        elif verdicts and _is_in(verdicts[0].quote, texts):
            quote = " ".join(verdicts[0].quote.split())[:LONGEST_SHOWN]
            yield sentence, VerifiedSentence(sentence=shown, supported=True, quote=quote)


def _is_in(quote: str, texts: Sequence[str]) -> bool:
    words = flat(quote).strip(" .…\"'")
    return any(
        len(words) >= min(SHORTEST_QUOTE, len(text)) and words in text for text in texts if words
    )


def _source(item: Item) -> VerifySource:
    """Return a source as the verifier reads it: its text, and the cells of a record."""
    cells = [f"{name}: {value}" for name, value in (item.data or {}).items()]
    if item.row:
        names = item.row.table.columns
        cells += [f"{name}: {cell}" for name, cell in zip(names, item.row.cells, strict=False)]
    text = "\n".join(filter(None, [item.content, *dict.fromkeys(cells)]))
    return VerifySource(title=item.title[:LONGEST_SHOWN], text=text[:LONGEST_SOURCE])
