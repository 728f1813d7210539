"""Which meaning the words under each key of a language's file have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from groundhook.handlers.db.question import sense, when
from groundhook.handlers.db.question.language_file import DateWords, LanguageFile

Entry = tuple[Iterable[str], sense.Sense]

# All words under a key have one meaning.
ONE_MEANING: Mapping[str, sense.Sense] = {
    "per": sense.Per(),
    "each": sense.Each(),
    "different": sense.Different(),
    "asked_values": sense.AskedValue(),
    "who": sense.Person(),
    "between": sense.Between(),
    "between_and": sense.BetweenAnd(),
    "sort_by": sense.SortBy(),
    "top": sense.Top(),
    "first": sense.First(),
    "having": sense.Having(),
    "negations": sense.Not(),
    "verb_negations": sense.Not(of_verb=True),
    "nor": sense.Nor(),
    "but": sense.But(),
    "than": sense.Than(),
    "yes": sense.Truth(True),
    "no": sense.Truth(False),
    "and_": sense.And(),
    "or_": sense.Or(),
    "links": sense.ValueLink(),
    "equals": sense.Equals(),
    "single": sense.Single(),
    "contains": sense.Contains(),
    "called": sense.Called(),
    "everything": sense.Everything(),
    "fillers": sense.Filler(),
    "requests": sense.Request(),
    "question_words": sense.QuestionWord(),
    "lead_ins": sense.LeadIn(),
    "made_verbs": sense.MadeVerb(),
    "linking_verbs": sense.LinkingVerb(),
    "auxiliaries": sense.Auxiliary(),
    "relatives": sense.Relative(),
}
# Below a key are names, each with words that mean this name.
BY_NAME: Mapping[str, Callable[[Any], sense.Sense]] = {
    "figures": sense.FigureWord,
    "prepositions": sense.Preposition,
    "units": sense.Unit,
    "adjectives": sense.Adjective,
    "how_much": sense.HowMuch,
    "comparisons": sense.Compare,
    "after_number": sense.Postfix,
    "superlatives": sense.Superlative,
    "directions": sense.Direction,
    "number_verbs": sense.NumberVerb,
}
# Below a key are kinds, and below each kind are names with words.
BY_KIND: Mapping[str, Callable[[str, Any], sense.Sense]] = {
    "figures_of": lambda kind, function: sense.FigureWord(function, kind),
    "measures": sense.Measure,
    "comparisons_of": lambda kind, op: sense.Compare(op, kind),
}
# Below a key are single words, each with its number.
BY_WORD: Mapping[str, Callable[[Any], sense.Sense]] = {
    "numerals": sense.Numeral,
    "multipliers": sense.Multiplier,
}
# The same for the keys below `dates`.
DATES_ONE_MEANING: Mapping[str, sense.Sense] = {
    "since": when.DateRelation("since"),
    "after": when.DateRelation("after"),
    "before": when.DateRelation("before"),
    "until": when.DateRelation("until"),
    "during": when.DateRelation("during"),
    "with_year": when.BeforeYear(),
    "previous": when.Period("previous"),
    "rolling": when.Period("rolling"),
    "counted": when.Period("counted"),
    "definite": when.Definite(),
    "this": when.Period("this"),
    "next": when.Period("next"),
    "previous_behind": when.PeriodBehind("previous"),
    "rolling_behind": when.PeriodBehind("rolling"),
    "this_behind": when.PeriodBehind("this"),
    "next_behind": when.PeriodBehind("next"),
    "upcoming": when.Ahead(True),
    "past": when.Ahead(False),
    "overdue": when.Ahead(False, due=True),
    "ago": when.Ago(),
    "old": when.Old(),
    "falls": when.Falls(),
    "today": when.DayWord(0),
    "yesterday": when.DayWord(-1),
    "tomorrow": when.DayWord(1),
    "weekend": when.Weekend(),
    "half": when.Half(),
}
DATES_BY_NAME: Mapping[str, Callable[[Any], sense.Sense]] = {
    "after_date": when.DatePostfix,
    "units": when.DateUnit,
    "seasons": when.Season,
    "clock_times": when.Clock,
    "decade_words": when.Decade,
}


def meanings_of(file: LanguageFile) -> Iterator[Entry]:
    """Yield the words of a language, each group with its meaning."""
    yield from _read_tables(file, ONE_MEANING, BY_NAME)
    for key, build in BY_KIND.items():
        for kind, groups in getattr(file, key).items():
            yield from ((words, build(kind, name)) for name, words in groups.items())
    for key, build_number in BY_WORD.items():
        numbers = getattr(file, key)
        yield from (([word], build_number(number)) for word, number in numbers.items())
    yield from ((one.words, sense.OrderWord(one.kinds, one.order)) for one in file.orders)
    for one in file.conditions:
        yield one.words, sense.Condition(one.kind, one.op, one.value)
    yield from _date_meanings(file.dates)


def _date_meanings(dates: DateWords) -> Iterator[Entry]:
    yield from _read_tables(dates, DATES_ONE_MEANING, DATES_BY_NAME)
    yield from ((words, when.Nth(number)) for number, words in enumerate(dates.nth, 1))
    yield from ((words, when.Weekday(number)) for number, words in enumerate(dates.weekdays))
    for unit, lengths in dates.lengths.items():
        yield from ((words, when.Length(unit, count)) for count, words in lengths.items())
    for number, words in enumerate(dates.months, 1):
        yield from (([word], when.Month(number, word not in dates.unclear)) for word in words)


def _read_tables(
    file: LanguageFile | DateWords,
    one_meaning: Mapping[str, sense.Sense],
    by_name: Mapping[str, Callable[[Any], sense.Sense]],
) -> Iterator[Entry]:
    yield from ((getattr(file, key), meaning) for key, meaning in one_meaning.items())
    for key, build in by_name.items():
        yield from ((words, build(name)) for name, words in getattr(file, key).items())
