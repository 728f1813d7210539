"""Takes the language off the vector of a question in another script than most of a collection.

A multilingual model puts texts of one language near each other whatever their subject, a small
model more so. The mean vector of a few everyday questions in a language is mostly that language;
half of it is subtracted from the question's vector. One language serves for its whole script: a
German question is near English ones too. This changes which passages are found; similarities stay
on the scale of the whole vector (`scale`). `bench/ablation.py` measures it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from groundhook.core.language.scripts import count_scripts, main_script
from groundhook.core.ports import Embedder
from groundhook.handlers.kb.embed import embed_questions
from groundhook.handlers.kb.language import script_of
from groundhook.handlers.kb.store.messages import pack_vector, unpack_vector
from groundhook.handlers.kb.store.port import LanguageShare

_SHARE = 0.5  # part of the language's mean that is subtracted
_MOST = 0.5  # a script of more than this share of the passages is the collection's own
_EVERYDAY = {  # by script
    "latin": (
        "What does this word mean?|How much does it cost?|Who wrote this book?|How does it"
        " work?|When does it begin?"
    ),
    "cyrillic": (
        "Что означает это слово?|Сколько это стоит?|Кто написал эту книгу?|Как это работает?|Когда"
        " это начинается?"
    ),
    "greek": (
        "Τι σημαίνει αυτή η λέξη;|Πόσο κοστίζει;|Ποιος έγραψε αυτό το βιβλίο;|Πώς λειτουργεί;|Πότε"
        " αρχίζει;"
    ),
    "hebrew": "מה פירוש המילה הזאת?|כמה זה עולה?|מי כתב את הספר הזה?|איך זה עובד?|מתי זה מתחיל?",
    "arabic": "ماذا تعني هذه الكلمة؟|كم يكلف ذلك؟|من كتب هذا الكتاب؟|كيف يعمل؟|متى يبدأ؟",
    "devanagari": (
        "इस शब्द का क्या मतलब है?|इसकी कीमत कितनी है?|यह किताब किसने लिखी?|यह कैसे काम करता है?|यह"
        " कब शुरू होता है?"
    ),
    "thai": "คำนี้แปลว่าอะไร|ราคาเท่าไร|ใครเขียนหนังสือเล่มนี้|มันทำงานอย่างไร|มันเริ่มเมื่อไร",
    "hangul": (
        "이 단어는 무슨 뜻인가요?|얼마인가요?|이 책은 누가 썼나요?"
        "|어떻게 작동하나요?|언제 시작하나요?"
    ),
    "cjk": "这个词是什么意思？|这需要多少钱？|谁写了这本书？|它是如何工作的？|什么时候开始？",
}


class LanguageRemoval:
    """Takes languages off questions. A model's mean vectors are computed when first needed."""

    def __init__(self) -> None:
        self._means: dict[tuple[str, str, int, str], list[float]] = {}

    async def neutral_vector(
        self, text: str, vector: bytes, languages: Mapping[str, LanguageShare], embedder: Embedder
    ) -> bytes:
        """Return the question's vector less half of its language's mean; empty where most passages
        are in the question's script, or where one of the two is not known. Passages whose language
        was not recognised are in Latin script. Raises the embedder's errors."""
        script = main_script(count_scripts(text))
        own = sum(
            spoken.share
            for language, spoken in languages.items()
            if (script_of(language) or "latin") == script
        )
        if not languages or script not in _EVERYDAY or own > _MOST:
            return b""
        mean = await self._mean(embedder, script)
        return pack_vector(
            [
                value - _SHARE * common
                for value, common in zip(unpack_vector(vector), mean, strict=True)
            ]
        )

    async def _mean(self, embedder: Embedder, script: str) -> Sequence[float]:
        key = (embedder.provider, embedder.model, embedder.dimensions, script)
        if key not in self._means:
            vectors = await embed_questions(embedder, _EVERYDAY[script].split("|"))
            self._means[key] = [
                math.fsum(values) / len(vectors) for values in zip(*vectors, strict=True)
            ]
        return self._means[key]
