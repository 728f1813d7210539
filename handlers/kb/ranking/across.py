"""Questions in another script than the documents, whose words do not match: their vector is freed
of its language.

A multilingual model puts texts of one language near each other, whatever they say, and the more so
the smaller it is. What the vectors of a few questions on everyday matters have in common is mostly
their language; half of that mean is taken off the question's vector. nDCG@10 of Chinese questions
on English paragraphs: .813 with the whole vector, .856 so (`bench/ablation.py`); between the other
pairs of English, Arabic and Chinese of XQuAD up to .03 more, and nowhere more than .002 less.

How similar a passage is to the question is still measured with the whole vector, so that thresholds
keep their meaning.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from groundhook.handlers.kb.language import language_of, main_script, scripts
from groundhook.handlers.kb.store import Answer, Hit, Question, packed, unpacked
from groundhook.host.core.ports import Embedder

_SHARE = 0.5  # of the language's mean that is taken off
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

Ask = Callable[[Question], Awaitable[Answer]]


class Across:
    """Asks again where the script differs. Each model's means are made when they are first
    needed."""

    def __init__(self) -> None:
        self._means: dict[tuple[str, str, int, str], list[float]] = {}

    async def answer(self, ask: Ask, question: Question, embedder: Embedder) -> Answer:
        """What `ask` answers. Raises what the embedder raises."""
        answer = await ask(question)
        if answer.lexical != "other script":
            return answer
        whole = unpacked(question.vector)
        freed = await self.freed(question.text, whole, embedder)
        if freed is None:
            return answer
        freely = await ask(replace(question, vector=packed(freed), least_cosine=-1.0, vectors=True))
        hits = [_measured(hit, whole) for hit in freely.hits]
        enough = [hit for hit in hits if hit.cosine >= question.least_cosine]
        return replace(
            freely,
            hits=tuple(hit if question.vectors else hit._replace(vector=b"") for hit in enough),
            below=len(hits) - len(enough),
        )

    async def freed(
        self, text: str, vector: Sequence[float], embedder: Embedder
    ) -> list[float] | None:
        """A question's vector without half of what questions in its language have in common; None
        when its language is not one of those that this is known for. Raises what the embedder
        raises."""
        language = _language(text)
        if language not in _EVERYDAY:
            return None
        mean = await self._mean(embedder, language)
        return [value - _SHARE * common for value, common in zip(vector, mean, strict=True)]

    async def _mean(self, embedder: Embedder, language: str) -> list[float]:
        key = (embedder.provider, embedder.model, embedder.dimensions, language)
        if key not in self._means:
            vectors = [
                await embedder.embed_query(asked) for asked in _EVERYDAY[language].split("|")
            ]
            self._means[key] = [
                math.fsum(values) / len(vectors) for values in zip(*vectors, strict=True)
            ]
        return self._means[key]


def _language(question: str) -> str:
    """The language of a question, as well as its script tells."""
    language = language_of(question)
    return language if language in _EVERYDAY else _OF_SCRIPT.get(main_script(scripts(question)), "")


def _measured(hit: Hit, question: Sequence[float]) -> Hit:
    """The hit with its cosine to the question's whole vector."""
    vector = unpacked(hit.vector)
    product = math.fsum(one * other for one, other in zip(question, vector, strict=True))
    return hit._replace(cosine=product / ((math.hypot(*question) * math.hypot(*vector)) or 1.0))
