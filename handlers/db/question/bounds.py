"""Bounds of a number, as a question says them: "under $100", "between 4 and 6", "49, 100 or 249",
"4 or more", "around 1000". Which field they are for is not known here."""

from __future__ import annotations

from dataclasses import dataclass, replace

from groundhook.handlers.db.model.schema import Field
from groundhook.handlers.db.question import sense, when
from groundhook.handlers.db.question.cursor import NUMBERS, Amount, Cursor

ABOUT, ROUGHLY = "~", 0.1  # how far from a number "about" reaches


@dataclass(frozen=True)
class Bound:
    """Numbers and how a field is compared with them: `op` is an operator of conditions, or `ABOUT`;
    `amounts` are two for "between", several for "in". `kind` is what the comparison speaks of
    ("cheaper than": money), `of` the field named before or within. `led`: a word says how it is
    compared; a bare number may also count records."""

    op: str
    amounts: tuple[Amount, ...]
    kind: str = ""
    of: Field | None = None
    led: bool = True

    @property
    def last(self) -> Amount:
        return self.amounts[-1]

    @property
    def bare(self) -> bool:
        """Whether neither a comparison nor a field was named."""
        return not (self.led or self.of)


def read_bound(cursor: Cursor, i: int, of: Field | None = None) -> Bound | None:
    """Return the bound that begins here. `of` is the field that was named before."""
    if (word := _comparison(cursor, i)) is not None:
        named, at = (of, word[1]) if of else _named_within(cursor, word[1])
        amount = cursor.amount(at) or _single_unit(cursor, at)
        return _widen(cursor, Bound(word[0].op, (amount,), word[0].kind, named)) if amount else None
    if (between := cursor.take(i, sense.Between)) is not None:
        lower = cursor.amount(between[1])
        upper = cursor.upper(lower.end) if lower else None
        return _range(Bound("between", (), of=of), lower, upper) if lower and upper else None
    bare = None if cursor.is_(i - 1, sense.Than) else cursor.amount(i)
    return _widen(cursor, Bound("=", (bare,), of=of, led=False)) if bare else None


def _comparison(cursor: Cursor, i: int) -> tuple[sense.Compare, int] | None:
    """ "under", "under the age of"."""
    word = cursor.take(i, sense.Compare)
    age = cursor.take(word[1], sense.Adjective) if word else None
    if word and age and age[0].kind == "age" and not word[0].kind:
        return sense.Compare(word[0].op, "age"), age[1]
    short = word and cursor.is_mark(word[1], ".") and cursor.number(word[1] + 1)  # "max. 900"
    return (word[0], word[1] + 1) if word and short else word


def _named_within(cursor: Cursor, i: int) -> tuple[Field | None, int]:
    """The "rating" of "minimum rating of 4", and the position of the number."""
    named = cursor.take(i, sense.FieldRef)
    if named is None or named[0].field.kind not in NUMBERS:
        return None, i
    return named[0].field, cursor.past(named[1], sense.ValueLink)


def _single_unit(cursor: Cursor, i: int) -> Amount | None:
    """The "an hour" of "longer than an hour"."""
    single = cursor.take(i, sense.Single)
    return Amount(1, "", single[1]) if single and cursor.time_unit(single[1]) else None


def _range(bound: Bound, lower: Amount, upper: Amount) -> Bound:
    """Return a range. What is said once belongs to both ends: "10 to 20 million", "1 to 4 kg"."""
    if lower.factor == 1 < upper.factor and lower.value < 1000:
        lower = replace(lower, value=lower.value * upper.factor)
    if not lower.kind:
        lower = replace(lower, kind=upper.kind, units=upper.units)
    if not upper.kind:
        upper = replace(upper, kind=lower.kind, units=lower.units)
    return replace(bound, op="between", amounts=(lower, upper))


def _widen(cursor: Cursor, bound: Bound) -> Bound:
    """Return a bound with what follows its number: the end of a range, more numbers, a comparison
    ("4 or more")."""
    amount = bound.last
    upper = None if cursor.is_(amount.end, sense.And) else cursor.upper(amount.end)
    if upper and bound.op in ("=", ">="):
        return _range(bound, amount, upper)
    lists = bound.op == "=" or bound.kind == "rating"  # "rated 1 or 2"
    if lists and len(listed := _list(cursor, bound)) > 1:
        return replace(bound, op="in", amounts=listed)
    postfix = postfixed(cursor, amount.end)
    if postfix is None:
        return bound
    op, end = postfix
    unit = cursor.take(end, sense.Unit)  # "4+ stars"
    kind = amount.kind or (unit[0].kind if unit else "")
    amount = replace(amount, kind=kind, end=unit[1] if unit else end)
    return replace(bound, op=op, amounts=(amount,), led=True)


def _list(cursor: Cursor, bound: Bound) -> tuple[Amount, ...]:
    """Return the amount and those that commas, "and" or "or" join to it, of one kind."""
    listed = [bound.last]
    while (at := cursor.joint(listed[-1].end)) > listed[-1].end:
        amount = cursor.amount(at)
        if amount is None:
            break
        listed.append(amount)
    while len(listed) > 1 and not _ends_list(cursor, bound, listed):
        listed.pop()
    return tuple(listed)


def _ends_list(cursor: Cursor, bound: Bound, listed: list[Amount]) -> bool:
    """Return whether the last number may be one of a list: nothing after it makes it a comparison,
    a length of time, a number of records or one of another field."""
    end = listed[-1].end
    kinds = {amount.kind for amount in listed} - {""}
    if len(kinds) > 1 or cursor.is_(end, sense.Postfix, sense.OrderWord, sense.Condition):
        return False
    named = cursor.number_named(end)
    if named is None and cursor.is_(end, when.DateUnit):
        return False
    return named is None or (named == bound.of if bound.of else not kinds - {"duration"})


def postfixed(cursor: Cursor, i: int) -> tuple[str, int] | None:
    """A comparison after its number: "4 or more", "$100 and above". Before another number it
    belongs to that one."""
    if postfix := cursor.take(i, sense.Postfix):
        following = (postfix[1], cursor.past_one(postfix[1], sense.Filler))  # "… and less than 800"
        alone = all(cursor.number(at) is None for at in following)
        return (postfix[0].op, postfix[1]) if alone else None
    if not cursor.is_(i, sense.And, sense.Or):
        return None
    word = cursor.take(cursor.after(i), sense.Compare)
    if word is None or word[0].kind or cursor.number(word[1]) is not None:
        return None
    return word[0].op[0] + "=", word[1]
