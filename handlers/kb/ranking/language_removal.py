"""Takes the language off the vector of a question that is in another language than most of a
collection.

A multilingual model puts texts of one language near each other whatever their subject, a small
model more so. The mean vector of a few everyday questions in a language is mostly that language;
half of it is subtracted from the question's vector. This changes which passages are found;
similarities stay on the scale of the whole vector (`scale`). `bench/ablation.py` measures it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

from groundhook.handlers.kb.embed import embed_questions
from groundhook.handlers.kb.language import (
    PLAIN,
    count_scripts,
    language_of,
    main_script,
    script_of,
)
from groundhook.handlers.kb.messages import pack_vector, unpack_vector
from groundhook.handlers.kb.store import LanguageShare
from groundhook.host.core.ports import Embedder

_SHARE = 0.5  # part of the language's mean that is subtracted
_MOST = 0.5  # a language of more than this share of the passages is the collection's own
_EVERYDAY = {
    "english": (
        "What does this word mean?|How much does it cost?|Who wrote this book?|How does it"
        " work?|When does it begin?"
    ),
    "german": (
        "Was bedeutet dieses Wort?|Wie viel kostet das?|Wer hat dieses Buch geschrieben?|Wie geht"
        " das?|Wann beginnt es?"
    ),
    "french": (
        "Que signifie ce mot ?|Combien ça coûte ?|Qui a écrit ce livre ?|Comment ça marche ?|Quand"
        " cela commence-t-il ?"
    ),
    "spanish": (
        "¿Qué significa esta palabra?|¿Cuánto cuesta?|¿Quién escribió este libro?|¿Cómo"
        " funciona?|¿Cuándo empieza?"
    ),
    "italian": (
        "Che cosa significa questa parola?|Quanto costa?|Chi ha scritto questo libro?|Come"
        " funziona?|Quando comincia?"
    ),
    "portuguese": (
        "O que significa esta palavra?|Quanto custa?|Quem escreveu este livro?|Como"
        " funciona?|Quando começa?"
    ),
    "dutch": (
        "Wat betekent dit woord?|Hoeveel kost het?|Wie heeft dit boek geschreven?|Hoe werkt"
        " het?|Wanneer begint het?"
    ),
    "turkish": (
        "Bu kelime ne demek?|Ne kadar tutuyor?|Bu kitabı kim yazdı?|Nasıl çalışıyor?|Ne zaman"
        " başlıyor?"
    ),
    "russian": (
        "Что означает это слово?|Сколько это стоит?|Кто написал эту книгу?|Как это работает?|Когда"
        " это начинается?"
    ),
    "greek": (
        "Τι σημαίνει αυτή η λέξη;|Πόσο κοστίζει;|Ποιος έγραψε αυτό το βιβλίο;|Πώς λειτουργεί;|Πότε"
        " αρχίζει;"
    ),
    "hebrew": "מה פירוש המילה הזאת?|כמה זה עולה?|מי כתב את הספר הזה?|איך זה עובד?|מתי זה מתחיל?",
    "arabic": "ماذا تعني هذه الكلمة؟|كم يكلف ذلك؟|من كتب هذا الكتاب؟|كيف يعمل؟|متى يبدأ؟",
    "hindi": (
        "इस शब्द का क्या मतलब है?|इसकी कीमत कितनी है?|यह किताब किसने लिखी?|यह कैसे काम करता है?|यह"
        " कब शुरू होता है?"
    ),
    "thai": "คำนี้แปลว่าอะไร|ราคาเท่าไร|ใครเขียนหนังสือเล่มนี้|มันทำงานอย่างไร|มันเริ่มเมื่อไร",
    "korean": (
        "이 단어는 무슨 뜻인가요?|얼마인가요?|이 책은 누가 썼나요?"
        "|어떻게 작동하나요?|언제 시작하나요?"
    ),
    "japanese": (
        "この言葉の意味は？|いくらですか？|この本は誰が書きましたか？|どのように動きますか？|いつ始まりますか？"
    ),
    "chinese": "这个词是什么意思？|这需要多少钱？|谁写了这本书？|它是如何工作的？|什么时候开始？",
}
_OF_SCRIPT = {
    "latin": "english",
    "cyrillic": "russian",
    "devanagari": "hindi",
    "hangul": "korean",
    "thai": "thai",
}


class LanguageRemoval:
    """Takes languages off questions. A model's mean vectors are computed when first needed."""

    def __init__(self) -> None:
        self._means: dict[tuple[str, str, int, str], list[float]] = {}

    async def neutral_vector(
        self, text: str, vector: bytes, languages: Mapping[str, LanguageShare], embedder: Embedder
    ) -> bytes:
        """Return the question's vector less half of its language's mean; empty where that language
        is the collection's own, or where one of the two is not known. Passages in Latin script
        whose language was not recognised may be in any language of that script. Raises the
        embedder's errors."""
        language = language_of_question(text)
        own = {language, PLAIN} if script_of(language) == "latin" else {language}
        share = sum(spoken.share for name, spoken in languages.items() if name in own)
        if not languages or not language or share > _MOST:
            return b""
        mean = await self._mean(embedder, language)
        return pack_vector(
            [
                value - _SHARE * common
                for value, common in zip(unpack_vector(vector), mean, strict=True)
            ]
        )

    async def _mean(self, embedder: Embedder, language: str) -> Sequence[float]:
        key = (embedder.provider, embedder.model, embedder.dimensions, language)
        if key not in self._means:
            vectors = await embed_questions(embedder, _EVERYDAY[language].split("|"))
            self._means[key] = [
                math.fsum(values) / len(vectors) for values in zip(*vectors, strict=True)
            ]
        return self._means[key]


@lru_cache(maxsize=256)
def language_of_question(text: str) -> str:
    """The language of a question by its words, else the most usual one of its script; "" where it
    is not known."""
    language = language_of(text, question=True)
    if language in _EVERYDAY:
        return language
    return _OF_SCRIPT.get(main_script(count_scripts(text)), "")
