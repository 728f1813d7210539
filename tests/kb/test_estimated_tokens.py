"""The estimate of tokens against the tokenizer of the bundled model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.handlers.kb.embedders.builtin import BuiltinEmbedder
from groundhook.host.core.tokens import estimated_tokens

TEXTS = {
    "en": "Results of the user's own data, of the hook and of automatic search join one pool.",
    "code": "async def open_turn(runtime: Runtime, turns: OpenTurns) -> AsyncIterator[Event]:",
    "de": "Unter Dubletten bleibt die Fassung mit dem höchsten Vorrang erhalten, und die"
    " Reihenfolge hängt nur von den Treffern ab.",
    "fr": "Parmi les doublons, la version de plus haute priorité est conservée.",
    "es": "Entre los duplicados se conserva la versión de mayor prioridad.",
    "he": "התוצאות של נתוני המשתמש ושל החיפוש האוטומטי נאספות יחד.",
    "ar": "تجتمع نتائج بيانات المستخدم والبحث التلقائي في مجموعة واحدة.",
    "zh": "用户自己的数据和自动搜索的结果汇集到同一个池中。",
    "ru": "Среди дубликатов остаётся версия с наивысшим приоритетом.",
}


@pytest.mark.parametrize("language", TEXTS)
def test_the_estimate_is_near_the_tokens_of_a_real_tokenizer(language: str) -> None:
    real = BuiltinEmbedder().count_tokens(TEXTS[language])
    assert 0.8 * real <= estimated_tokens(TEXTS[language]) <= 2 * real


@given(st.text(max_size=200), st.text(max_size=200))
def test_a_longer_text_never_has_a_smaller_estimate(one: str, other: str) -> None:
    assert estimated_tokens(f"{one} {other}") >= estimated_tokens(one)
