"""The estimate of tokens against the tokenizers of large models, and that of the bundled one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.tokens import estimated_tokens
from groundhook.handlers.kb.embedders.builtin import BuiltinEmbedder

# Each with its tokens in o200k_base (tiktoken 0.14), DeepSeek (litellm 1.109) and Tekken
# (mistral-common 1.13), as counted once: their vocabularies are too large for the tests.
TEXTS = {
    "en": (
        "Results of the user's own data, of the hook and of automatic search join one pool.",
        (18, 19, 19),
    ),
    "code": (
        "async def open_turn(runtime: Runtime, turns: OpenTurns) -> AsyncIterator[Event]:",
        (19, 22, 22),
    ),
    "de": (
        "Unter Dubletten bleibt die Fassung mit dem höchsten Vorrang erhalten, und die"
        " Reihenfolge hängt nur von den Treffern ab.",
        (27, 35, 27),
    ),
    "fr": ("Parmi les doublons, la version de plus haute priorité est conservée.", (16, 19, 16)),
    "es": ("Entre los duplicados se conserva la versión de mayor prioridad.", (12, 16, 13)),
    "he": ("התוצאות של נתוני המשתמש ושל החיפוש האוטומטי נאספות יחד.", (19, 25, 24)),
    "ar": ("تجتمع نتائج بيانات المستخدم والبحث التلقائي في مجموعة واحدة.", (15, 16, 14)),
    "zh": ("用户自己的数据和自动搜索的结果汇集到同一个池中。", (16, 12, 22)),
    "ru": ("Среди дубликатов остаётся версия с наивысшим приоритетом.", (17, 21, 19)),
    "fi": (
        "Käyttäjän omien tietojen ja automaattisen haun tulokset kootaan yhteen joukkoon, ja"
        " päällekkäisistä säilyy tärkein.",
        (38, 45, 42),
    ),
    "el": (
        "Τα αποτελέσματα των δεδομένων του χρήστη και της αυτόματης αναζήτησης συγκεντρώνονται σε"
        " ένα σύνολο.",
        (30, 40, 30),
    ),
    "vi": (
        "Kết quả từ dữ liệu của người dùng và tìm kiếm tự động được tập hợp vào một nhóm duy nhất.",
        (23, 33, 23),
    ),
    "hi": (
        "उपयोगकर्ता के अपने डेटा और स्वचालित खोज के परिणाम एक ही समूह में एकत्र होते हैं।",
        (23, 40, 30),
    ),
    "ja": (
        "ユーザー自身のデータと自動検索の結果は一つのプールに集められます。重複の中では優先度の最も高い版が残ります。",
        (44, 36, 44),
    ),
    "ko": (
        "사용자 자신의 데이터와 자동 검색 결과는 하나의 풀에 모입니다. 중복 중에서는 우선순위가 가장 높은 것이"
        " 남습니다.",
        (31, 37, 30),
    ),
    "capitals": ("WHAT HAPPENS WHEN A HOOK FAILS, AND WHERE IT IS REPORTED", (17, 17, 20)),
    "numbers": ("4711,2026-01-17,381.70,SKU-083741,Hamburg", (21, 22, 35)),
}
# Tekken makes a token of every digit.
LEAST = {"numbers": 0.65}


@pytest.mark.parametrize("kind", TEXTS)
def test_the_estimate_is_near_the_tokens_of_real_tokenizers(kind: str) -> None:
    text, counts = TEXTS[kind]
    estimate = estimated_tokens(text)
    for real in (*counts, BuiltinEmbedder().count_tokens(text)):
        assert LEAST.get(kind, 0.85) * real <= estimate <= 2.2 * real


@given(st.text(max_size=200), st.text(max_size=200))
def test_a_longer_text_never_has_a_smaller_estimate(one: str, other: str) -> None:
    assert estimated_tokens(f"{one} {other}") >= estimated_tokens(one)
