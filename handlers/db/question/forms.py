"""The forms of questions: which clauses in which order make a query, and which query."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from groundhook.core.types.query_language import (
    Aggregate,
    BucketUnit,
    DateBucket,
    Order,
    Where,
)
from groundhook.handlers.db.query.dsl import QueryDSL, conditions
from groundhook.handlers.db.question.clauses import Clause, Here
from groundhook.handlers.db.question.scope import TIMES

_PRE = "(?:a|p|s|t|z|pk(?=[ap]))*"  # "the three cheapest red", "tomorrow's"
_NOUN = f"{_PRE}[nm]"
_NEXT = "[wbhdva]*[cpzRNV]"
_COND = f"(?:{_NEXT}(?:k?{_NEXT})*)?"  # "from Berlin that are pending and …"
_ORDER = "(?:[wbhka]*[so])?"
_TAIL = "[bhv]*"
# By name, the forms of questions, each with whether it names its records.
_FORMS = {
    "list": re.compile(f"^r*{_NOUN}{_COND}{_ORDER}{_TAIL}$"),
    "count": re.compile(f"^[ra]*G?a*f[Oa]*{_NOUN}{_COND}(?:b?G{_COND})?{_TAIL}$"),
    "count of a kind": re.compile("^[ra]*f[Oa]*pz?$"),
    "grouped": re.compile(f"^r*{_NOUN}{_COND}G{_COND}$"),
    "figure": re.compile(f"^[rba]*G?g(?:[Oa]*{_NOUN})?(?:[Oa]*{_COND})(?:G{_COND})?{_TAIL}$"),
    "fields": re.compile(
        f"^[rab]*q(?:k?a*q)*(?:[ab]*O[Oab]*{_NOUN}{_COND}{_ORDER}|[ab]*[Ob][Oab]*(?:n)?N{_COND}){_TAIL}$"
    ),
    "field behind": re.compile("^[rabd]*N[qQ]$|^[rabf]*Qa*N$"),
    "kept groups": re.compile(f"^[ra]*q(?:{_COND}H|H{_COND}){_TAIL}$"),
    "when": re.compile("^T[bd]a*(?:n)?Nb*q?$"),
    "most": re.compile(f"^[ra]*q[hwba]*M[Oa]*{_NOUN}{_COND}{_TAIL}$"),
    "ranking": re.compile(f"^[ra]*tq(?:{_COND})x(?:a*f?[Oa]*{_NOUN}|g){_COND}$"),
    "bare": re.compile(f"^[rab]*(?:t?s|st)?a*[cpzN](?:k?[wbhdva]*[cpzN])*{_ORDER}{_TAIL}$"),
}
_HARMLESS = re.compile("k?y|yk|[iye]")
# What follows related records belongs to them; a time to the record, which is what happened.
_BEHIND_RELATED = re.compile("[RV][^kR]*[cpN]|V.*[cpNRV]")


@dataclass(frozen=True)
class QueryReading:
    """A query for a question. `notes` say what is not certain of it; `presumes`: the question
    assumes that there is something; `named`: it names its records; `idle` are words left out."""

    query: QueryDSL
    notes: tuple[str, ...] = ()
    presumes: bool = False
    yearless: bool = False
    named: bool = True
    idle: tuple[str, ...] = ()


def compose(here: Here, clauses: Sequence[Clause]) -> Iterator[QueryReading]:
    """Yield the readings of a question whose words all belong to these clauses."""
    letters = _HARMLESS.sub("", "".join(clause.kind for clause in clauses))
    if _BEHIND_RELATED.search(letters) or not _ends_well(here, letters):
        return
    if "z" in letters and ("V" in letters or _counted(clauses)):
        return  # "with more than 5 orders in March", "who never ordered in March"
    wheres = _joined(clauses)
    if wheres is None:
        return
    for form, pattern in _FORMS.items():
        if pattern.match(letters):
            made = _Query(here, clauses, wheres).build(form)
            if made is not None:
                yield made
            return


def _ends_well(here: Here, letters: str) -> bool:
    """Return whether a verb at the end may be there: in languages where it comes last."""
    return here.scope.words.file.verbs_last or letters[-1:] not in ("b", "h", "v")


def _joined(clauses: Sequence[Clause]) -> tuple[Where, ...] | None:
    """Return all conditions; None where they exclude each other, or where nobody knows what an
    "or" joins."""
    parts = [clause for clause in clauses if clause.wheres]
    if len(parts) > 1 and any(clause.figure == "either" and clause.kind != "p" for clause in parts):
        return None
    chosen = [name for clause in parts for name in _chosen(clause)]
    if len(chosen) > len(set(chosen)):
        return None
    wheres = dict.fromkeys(where for clause in parts for where in clause.wheres)
    return (*wheres, *_counted(clauses))


def _counted(clauses: Sequence[Clause]) -> list[Where]:
    """Return the conditions on numbers of related records."""
    found = [clause for clause in clauses if clause.kind == "R" and clause.direction]
    return [Where(related=one.relation, count={one.direction: one.count}) for one in found]


def _chosen(clause: Clause) -> set[str]:
    """Return the fields of which a clause chooses texts."""
    return {
        where.field
        for where in conditions(clause.wheres)
        if where.op in ("=", "in", "!=", "not in") and not isinstance(where.value, (int, float))
    }


@dataclass
class _Query:
    here: Here
    clauses: Sequence[Clause]
    wheres: tuple[Where, ...]

    def _of(self, *kinds: str) -> list[Clause]:
        return [clause for clause in self.clauses if clause.kind in kinds]

    def build(self, form: str) -> QueryReading | None:
        """Return the query of a form; None if its parts do not fit each other."""
        match form:
            case "list" | "bare":
                return self._list(named=form == "list")
            case "count":
                return self._figures([Aggregate(function="count")])
            case "count of a kind":
                return self._count_of_kind()
            case "grouped":
                strong = not any(clause.direction for clause in self._of("G"))
                return self._figures([Aggregate(function="count")]) if strong else None
            case "figure":
                return self._figures([_aggregate(clause) for clause in self._of("g")])
            case "fields" | "field behind" | "when":
                return self._fields(only_times=form == "when")
            case _:
                return self._ranking()

    def _list(self, *, named: bool, select: tuple[str, ...] = ()) -> QueryReading | None:
        """Return the query of a list of records."""
        sorts, tops = self._of("s", "o"), self._of("t")
        orders = [order for clause in sorts if (order := _order(clause, top=bool(tops)))]
        if len(sorts) > 1 or len(orders) < len(sorts) or len(tops) > len(sorts):
            return None
        superlative = bool(self._of("s"))
        notes = tuple(note for clause in self.clauses for note in clause.notes)
        limit = tops[0].count if tops else None
        if superlative and not tops and not notes:
            plural = self._plural(named=named)
            limit, notes = (None, ("how_many",)) if plural else (1, ())
        presumes = superlative or bool(select) or bool(self._of("N"))
        select, doubts = self._with_persons(select)
        content = {"orders": orders, "limit": limit, "select": select}
        return self._reading(content, (*notes, *doubts), presumes=presumes, named=named)

    def _with_persons(self, select: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the fields of a list, and what is doubtful of it. Where "who" is answered with
        records that are no persons, the names of the persons that they belong to come first; it is
        doubtful unless that is one."""
        scope = self.here.scope
        if select or scope.of_persons or not self.here.question.is_(0, "who"):
            return select, ()
        shown = [one.name for titles in scope.persons for one in titles]
        shown += [one.name for one in scope.own] if shown else []
        sure = len(scope.persons) + len(scope.named_persons) == 1
        return tuple(shown), () if sure else ("who",)

    def _plural(self, *, named: bool) -> bool:
        """Return whether the name of the records is plural, or the value that stands for them:
        "quickest dinners"."""
        if named:
            return any(noun.plural for noun in self._of("n"))
        kinds, question = self._of("p"), self.here.question
        word = question.norm(kinds[-1].end - 1) if kinds else ""
        return word != question.words.stem(word)

    def _figures(self, aggregates: Sequence[Aggregate]) -> QueryReading | None:
        groups = self._of("G")
        if self._of("s", "o", "t") or any(clause.list_only for clause in self.clauses):
            return None
        buckets = _buckets(groups)
        if len(groups) > 1 or (buckets and not self._happened(aggregates)):
            return None
        # Without a condition it is the number of rows that is asked for.
        repeated = bool(self.wheres) and not groups and self.here.scope.rows_repeat()
        notes = ("not_rows",) if repeated and aggregates[0].function in ("count", "sum") else ()
        names = buckets or _group_names(self.here, groups)
        content = {"aggregates": aggregates, "groups": names}
        orders = [Order(field=aggregates[0].called)] if groups else []
        orders = [Order(field=one.called, order="asc") for one in buckets] or orders
        named = bool(self._of("n", "m"))
        return self._reading({**content, "orders": orders}, notes, named=named)

    def _count_of_kind(self) -> QueryReading | None:
        """ "how many no-shows": the number of records with one of a field's options."""
        fields = [where.field for where in conditions(self._of("p")[0].wheres)]
        chosen = all(name in self.here.fields and self.here.fields[name].options for name in fields)
        plural = self._plural(named=False)
        return self._figures([Aggregate(function="count")]) if chosen and plural else None

    def _happened(self, aggregates: Sequence[Aggregate]) -> bool:
        """Return whether figures are of what happened in a time: "the rent per month" is not. An
        average "per month" may be that of the months."""
        figured = {one.field for one in aggregates if one.field != "*"}
        fields = [one for clause in self._of("g") for one in clause.fields]
        paid = {one.name for one in fields if self.here.scope.is_kind(one, "turnover")}
        added = all(one.function == "sum" or one.field == "*" for one in aggregates)
        by = all(clause.direction for clause in self._of("G"))
        return figured <= paid and (added or by)

    def _fields(self, *, only_times: bool) -> QueryReading | None:
        asked = [one for clause in self._of("q", "Q") for one in clause.fields]
        if only_times and not (asked and all(one.kind in TIMES for one in asked)):
            return None
        return self._list(named=bool(self._of("n", "m")), select=tuple(one.name for one in asked))

    def _is_no_group(self, asked: Clause, kept: Sequence[Clause]) -> bool:
        related = [self.here.titles(name) for name in self.here.scope.offer.related]
        if kept and list(asked.fields) in related:
            return True  # "customers with more than 5 orders" are customers
        kinds = {one.kind for one in asked.fields}
        listed = bool(self._of("s", "o")) or any(clause.list_only for clause in self.clauses)
        return listed or not kinds <= {"text", "boolean", "integer"}

    def _ranking(self) -> QueryReading | None:
        """ "which city has the most customers", "top 5 brands by revenue", "cities with more than 5
        customers"."""
        [asked], kept, tops, most = self._of("q")[:1], self._of("H"), self._of("t"), self._of("M")
        figures = [_aggregate(clause) for clause in self._of("g")] or [Aggregate(function="count")]
        if self._is_no_group(asked, kept):
            return None
        called, direction = figures[0].called, most[0].direction if most else "desc"
        bars = [Where(field=called, op=one.direction, value=one.count) for one in kept]
        content = {
            "aggregates": figures,
            "groups": _group_names(self.here, [asked]),
            "havings": tuple(bars),
            "orders": [Order(field=called, order=direction)],
            "limit": None if kept else tops[0].count if tops else 1,
        }
        named = bool(kept or self._of("n"))
        return self._reading(content, (), presumes=not kept, named=named)

    def _reading(
        self,
        content: Mapping[str, object],
        notes: tuple[str, ...],
        *,
        presumes: bool = False,
        named: bool = True,
    ) -> QueryReading:
        given = {key: value for key, value in content.items() if value}
        query = QueryDSL(model=self.here.scope.schema.id, wheres=self.wheres, **given)
        begin, idle = 0, []
        for clause in self.clauses:
            if clause.kind == "i":
                idle.append(self.here.question.typed(begin, clause.end))
            begin = clause.end
        yearless = any(clause.yearless for clause in self.clauses)
        return QueryReading(query, notes, presumes, yearless, named, tuple(idle))


def _order(clause: Clause, *, top: bool) -> Order | None:
    """Return a sort order; None where nobody knows in which direction."""
    direction = clause.direction or ("desc" if top else "")
    return Order(field=clause.fields[0].name, order=direction) if direction else None


def _aggregate(clause: Clause) -> Aggregate:
    name = clause.fields[0].name
    if clause.figure == "different":
        return Aggregate(function="count", field=name, distinct=True)
    return Aggregate(function=clause.figure, field=name)


def _buckets(groups: Sequence[Clause]) -> tuple[DateBucket, ...]:
    """Return the groups by a part of a date."""
    dated = [clause for clause in groups if clause.bucket]
    return tuple(
        DateBucket(field=one.name, by=cast("BucketUnit", clause.bucket))
        for clause in dated
        for one in clause.fields
    )


def _group_names(here: Here, groups: Sequence[Clause]) -> tuple[str, ...]:
    """Return the fields to group by. Related records that are called the same are apart, by the
    key that links to them."""
    names: list[str] = []
    for clause in groups:
        for one in clause.fields:
            relation = here.scope.schema.relations.get(one.name.partition(".")[0])
            if relation and len(clause.fields) == len(here.titles(relation.name)):
                titles = here.titles(relation.name)
                if one in titles and relation.foreign not in names:
                    names.append(relation.foreign)
            names.append(one.name)
    return tuple(dict.fromkeys(names))
