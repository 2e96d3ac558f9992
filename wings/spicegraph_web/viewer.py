"""The viewer of results: the report's verdict, scores, list and image view, made from results files as one asks."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import numpy as np
from aiohttp import web

from spicegraph_parser.errors import SpicegraphError
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.core.significance import Comparison, Resampling
from spicegraph_scorer.metrics import METRICS, lower_is_better
from spicegraph_scorer.readers.checks import check_items
from spicegraph_service.kit import Line, Mark, System, best_points, histogram, ink, interval_chart, number, standings
from spicegraph_service.report import Pictures, Report, ReportOptions, build_report, chunks, image_sources, index
from spicegraph_service.report.verdict import (
    Verdict,
    category_points,
    other_scores,
    pair_headline,
    strongest_and_weakest,
    verdict,
)
from spicegraph_web.pages import LONGEST_TEXT, local_page
from spicegraph_web.table import ORDERS, PARTS, ItemValues, Query, ResultTable, by_category

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from markupsafe import Markup

    from spicegraph_scorer.core.data import MetricData
    from spicegraph_scorer.core.facts import FactSource
    from spicegraph_service.report.verdict import TellingError
    from spicegraph_web.table import Keys, Numbers


_ROWS: Final = 50
_TELLING: Final = 40  # items, those with the largest difference, among which examples of errors are looked for
_FIRST_SCORES: Final = ("SPICE", "All_f", "SPICE-G", "CIDEr")
_NORMAL: Final = 1.96
_TENTHS: Final = 10
_COUNTS: Final = frozenset({"tp", "fp", "fn"})
_EQUAL: Final = 5e-4


@dataclass(frozen=True, slots=True)
class Overview:
    """Summary of all items for the first screen."""

    count: int
    verdict: Verdict
    rows: Mapping[str, Sequence[Mark]]  # a mark per system for each score without categories: mean and 95 % interval
    corpus: Mapping[str, Sequence[float | None]]  # corpus scores of the files, by score and system
    pair: tuple[int, int | None]
    score: str
    charts: Mapping[str, Markup]


def _of_one(
    table: ResultTable, name: str, mark: Mark, told: float | None, categories: Mapping[str, Sequence[Mark]]
) -> Verdict:
    """Return the verdict on a single system, with its file's corpus score if any."""
    points = strongest_and_weakest({category: marks[0].value for category, marks in categories.items()})
    of_corpus = f"; of the corpus {told:.3f}" if told is not None else ""
    ends = f"95 % interval {number(mark.low)} to {number(mark.high)}"
    detail = f"The mean of {table.count:,} items, {ends}{of_corpus}."
    return Verdict(f"{name} {number(mark.value)}", detail, tuple(points))


def _comparisons(table: ResultTable, names: Iterable[str], best: int, other: int) -> dict[str, Comparison]:
    """Return by how much one system is better than another in each score, over the items that both have."""
    tests = {}
    for name in names:
        first, second = table.column(other, name), table.column(best, name)
        size = min(len(first), len(second))
        tests[name] = Comparison(name, None, None, *_interval(second[:size] - first[:size]), None, None)
    return tests


def _first_two(values: Sequence[float | None], *, is_lower_better: bool) -> tuple[int, int | None]:
    """Return the numbers of the best system and of the next, if there is one."""
    sign = -1 if is_lower_better else 1
    best, *others = sorted(range(len(values)), key=lambda n: -sign * (values[n] or 0.0))
    return best, others[0] if others else None


def overview_of(table: ResultTable) -> Overview:
    """Return who is better by the items read so far; intervals are 1.96 standard errors."""
    names = [system.name for system in table.systems]
    columns = table.scores  # more may come while this is made
    plain, metrics = by_category(columns)
    lower = lower_is_better(METRICS)
    score = next((name for name in (*_FIRST_SCORES, *plain) if name in columns), "")
    if not score:
        return Overview(table.count, Verdict("No scores have been read", "", ()), {}, {}, (0, None), "", {})
    label = {"All_f": "SPICE"}.get(score, score)  # as the SPICE program calls it
    parts = next(iter(metrics.values()), {})
    categories = {category: of["f"] for category, of in parts.items() if of.get("f", score) != score}
    means = {
        name: [Mark(who, *_within(table.column(n, name)), ink(n)) for n, who in enumerate(names)]
        for name in dict.fromkeys((*plain, score, *categories.values()))
    }
    corpus = {name: [system.corpus.get(name) for system in table.systems] for name in (*plain, score)}
    values = [mark.value for mark in means[score]]
    best, other = _first_two(values, is_lower_better=score in lower)
    rows = {name: means[name] for name in dict.fromkeys((*plain, score))}
    of_categories = {name: means[column] for name, column in categories.items()}
    if other is None:
        decided = _of_one(table, f"{names[0]}: {label}", means[score][0], corpus[score][0], of_categories)
    else:
        pair, both = (names[best], names[other]), (values[best], values[other])
        tests = _comparisons(table, means, best, other)
        headline, detail = pair_headline(
            label, pair, both, tests[score], systems=len(names), of="items", lower=score in lower
        )
        others = [tests[name] for name in plain if name != score]
        points = *_of_categories(table, categories, tests, best), *other_scores(others, lower, pair)
        decided = Verdict(headline, f"Means of {table.count:,} items. {detail}", points)
    return Overview(
        table.count,
        decided,
        rows,
        corpus,
        (best, other),
        score,
        _charts(table, score, {label: rows[score]} | of_categories),
    )


def _of_categories(
    table: ResultTable, categories: Mapping[str, str], tests: Mapping[str, Comparison], best: int
) -> Iterator[tuple[str, str]]:
    """Yield where the best of two systems is better, or who is the best of several in each category."""
    names = [system.name for system in table.systems]
    if not categories:
        return
    if len(names) == 2:
        yield from category_points({name: tests[column] for name, column in categories.items()}, names[best])
        return
    columns = [[table.column(n, column) for column in categories.values()] for n in range(len(names))]
    pairs = {
        (a, b): {name: _tested(name, *both) for name, *both in zip(categories, columns[a], columns[b], strict=True)}
        for a, b in combinations(range(len(names)), 2)
    }
    values = [[_interval(column)[0] for column in of_system] for of_system in columns]
    counts = [int(np.isfinite(column).sum()) for column in columns[0]]
    yield from best_points(standings(tuple(categories), values, counts, pairs), names)


def _tested(name: str, first: Numbers, second: Numbers) -> Comparison:
    """Return a test of two systems as far as both are read: a mean of differences in its standard errors."""
    size = min(len(first), len(second))
    mean, low, high = _interval(second[:size] - first[:size])
    if mean is None or low is None:
        return Comparison(name, None, None, mean, None, None, None, None)
    p = math.erfc(abs(mean) * _NORMAL / (mean - low) / math.sqrt(2)) if mean > low else float(mean == 0)
    return Comparison(name, None, None, mean, low, high, p, p)


def _charts(table: ResultTable, score: str, categories: Mapping[str, Sequence[Mark]]) -> dict[str, Markup]:
    charts = {}
    if len(categories) > 1:
        charts["category"] = interval_chart(
            "Mean F1 by category",
            list(categories.items()),
            axis="mean F1 of items",
            description="Points by category and system with 95 % intervals.",
        )
    columns = [table.column(number, score) for number in range(len(table.systems))]
    known = [values[np.isfinite(values)] for values in columns]
    if any(len(values) for values in known):
        most = max(1.0, *(float(values.max()) for values in known if len(values)))
        counts = [np.histogram(values, bins=_TENTHS, range=(0.0, most))[0].tolist() for values in known]
        lines = [Line(s.name, row, ink(n)) for n, (s, row) in enumerate(zip(table.systems, counts, strict=True))]
        edges = np.linspace(0.0, most, _TENTHS + 1).tolist()
        charts["spread"] = histogram(
            f"Items by {score}", edges, lines, x=score, y="items", description="How many items score in each tenth."
        )
    return charts


def _interval(values: Numbers) -> tuple[float | None, float | None, float | None]:
    """Return the mean of the defined values and its 95 % confidence interval."""
    known = values[np.isfinite(values)]
    if not len(known):
        return None, None, None
    mean = float(known.mean())
    if len(known) < 2:
        return mean, None, None
    error = _NORMAL * float(known.std(ddof=1)) / math.sqrt(len(known))
    return mean, mean - error, mean + error


def _within(values: Numbers) -> tuple[float | None, float | None, float | None]:
    """Return the mean with its interval, which ends where the items' scores end, as a bootstrap's does."""
    mean, low, high = _interval(values)
    if low is None or high is None:
        return mean, low, high
    return mean, max(low, float(np.nanmin(values))), min(high, float(np.nanmax(values)))


class Viewer:
    """Pages of results; ``facts``, ``data`` and ``pictures`` make the reports of single items."""

    def __init__(
        self, table: ResultTable, facts: FactSource, data: MetricData, pictures: Pictures | None = None
    ) -> None:
        self._table = table
        self._facts = facts
        self._data = data
        self._pictures = pictures
        self._overview: tuple[bool, Overview] | None = None
        self._parsing = asyncio.Lock()

    def routes(self, base: str) -> Iterable[web.AbstractRouteDef]:
        """Yield the routes of the list, of an item, and of pictures in a folder."""
        yield web.get(f"{base}/", self._list)
        yield web.get(f"{base}/item/{{key}}", self._item)
        if self._pictures is not None and Path(self._pictures.pattern).is_dir():
            yield web.static(f"{base}/images", Path(self._pictures.pattern).absolute())
            self._pictures = replace(self._pictures, url=f"{base}/images")

    async def _list(self, request: web.Request) -> web.Response:
        part = request.query.get("part", "")
        query = self._query(request.query)
        if part == "telling":
            async with self._parsing:
                return local_page("view_telling.html.j2", await asyncio.to_thread(self._telling))
        values = await asyncio.to_thread(self._overview_values if part == "overview" else partial(self._values, query))
        template = {"overview": "view_overview.html.j2", "1": "view_list.html.j2"}.get(part, "view.html.j2")
        return local_page(template, values)

    def _overview_values(self) -> dict[str, Any]:
        known, done = self._overview, self._table.done
        # While files are being read, the overview is made again when there are twice as many items.
        if known is None or (done and not known[0]) or self._table.count > 2 * known[1].count:
            self._overview = known = done, overview_of(self._table)
        systems = [system.name for system in self._table.systems]
        return {"overview": known[1], "systems": systems, "done": self._table.done, "count": self._table.count}

    def _values(self, query: Query) -> dict[str, Any]:
        table = self._table
        total, items, mean = table.find(query)
        before, after = query.start - query.count, query.start + query.count
        return {
            **self._overview_values(),
            "query": query,
            "total": total,
            "items": items,
            "mean": mean,
            "corpus": [system.corpus.get(query.score) for system in table.systems],
            "choices": choices(table.scores),
            "orders": list(ORDERS.items()),
            "state": f"{table.count:,} items" + ("" if table.done else " so far; the files are being read"),
            "fault": table.fault,
            "address": _address(query, query.start),
            "before": _address(query, before) if before >= 0 else "",
            "after": _address(query, after) if after < total else "",
            "sources": self._sources([item.id for item in items]),
        }

    def _query(self, asked: Mapping[str, str]) -> Query:
        scores = self._table.scores
        first = next((name for name in _FIRST_SCORES if name in scores), scores[0] if scores else "")
        chosen = asked.get("score", "")
        system = asked.get("system", "")
        return Query(
            text=asked.get("q", "")[:LONGEST_TEXT],
            score=chosen if chosen in scores else first,
            system=int(system)
            if system.isdecimal() and len(system) < 4 and int(system) < len(self._table.systems)
            else 0,
            low=_number(asked.get("low", "")),
            high=_number(asked.get("high", "")),
            order=order if (order := asked.get("order", "")) in ORDERS else "worst",
            start=int(start) if (start := asked.get("start", "")).isdecimal() and len(start) < 10 else 0,
            count=_ROWS,
        )

    def _sources(self, ids: Sequence[str]) -> dict[str, str]:
        sources = image_sources(self._pictures, ids) if self._pictures else {}
        return {str(name): source for name, source in sources.items()}

    def _report(self, items: Sequence[ItemValues], names: Mapping[int, str]) -> Report:
        """Return the report of items whose captions and references are known, for the systems of these numbers."""
        systems = [
            System(name, check_items(captions, control_tokens="keep"))  # as they were scored
            for number, name in names.items()
            for captions in ([Item(item.id, item.captions[number], item.references) for item in items],)
        ]
        metrics = ("spice", *(("spice-g",) if any("SPICE-G" in item.scores for item in items) else ()))
        options = ReportOptions(metrics, data=self._data, images=self._pictures, resampling=Resampling(1), human=False)
        report = build_report(systems, options, pipeline=self._facts)
        others = tuple(name for name in by_category(items[0].scores)[0] if name != "SPICE")
        images = []
        for item, image in zip(items, report.images, strict=True):
            candidates = []
            for system, view in zip(names, image.candidates, strict=True):
                values = tuple(item.scores[name][system] for name in others)
                workings = tuple(working for working in view.workings if working.score == "SPICE")
                candidates.append(replace(view, metrics=values, workings=workings))
            images.append(replace(image, candidates=tuple(candidates)))
        return replace(report, metrics=others, images=tuple(images))

    def _gap(self, system: int, other: int, score: str) -> Numbers:
        """Return how far a system is ahead of another, over the items of both."""
        values, others = self._table.column(system, score), self._table.column(other, score)
        size = min(len(values), len(others))
        return values[:size] - others[:size]

    def _telling(self) -> dict[str, Any]:
        """Return examples of errors, of the items where the better of two systems is most ahead."""
        overview = self._overview_values()["overview"]
        best, other = overview.pair
        wrong = best if other is None else other
        gap = self._table.column(wrong, overview.score) if other is None else self._gap(other, best, overview.score)
        keys = [int(key) for key in np.argsort(gap, kind="stable")[:_TELLING] if np.isfinite(gap[key])]
        numbers = sorted({best, wrong})
        items = {key: item for key in keys if (item := self._table.item(key)) and item.references}
        known = {key: item for key, item in items.items() if all(item.captions[number].strip() for number in numbers)}
        telling: list[tuple[int, TellingError]] = []
        if known:
            names = {number: self._table.systems[number].name for number in numbers}
            try:
                report = self._report(list(known.values()), names)
            except SpicegraphError:  # the page of an item says what is wrong with it
                return {"telling": [], "systems": list(names.values())}
            for error in verdict(report).telling:
                captions = tuple((numbers[number], parts) for number, parts in error.captions)
                telling.append(
                    (list(known)[error.item], replace(error, system=numbers[error.system], captions=captions))
                )
        return {"telling": telling, "systems": [system.name for system in self._table.systems], "best": best}

    async def _item(self, request: web.Request) -> web.Response:
        key = request.match_info["key"]
        query = self._query(request.query)
        async with self._parsing:
            is_number = key.isdecimal() and len(key) < 10
            values = await asyncio.to_thread(self._item_values, int(key), query) if is_number else None
        if values is None:
            raise web.HTTPNotFound(text="there is no such item")
        return local_page("view_item.html.j2", values)

    def _item_values(self, key: int, query: Query) -> dict[str, Any] | None:
        item = self._table.item(key)
        if item is None:
            return None
        order, _ = self._table.select(query)
        position, steps = _neighbours(order, key)
        # The list is opened at the page that has the item.
        start = (position or 0) // query.count * query.count
        names = {
            number: system.name
            for number, system in enumerate(self._table.systems)
            if item.references and item.captions[number].strip()
        }
        drawn: dict[str, str] = {}
        notice = "To see marked words, tuples and graphs, give view the files of --captions and --references."
        if names:
            try:
                report = self._report([item], names)
                drawn = {"index": index(report), "chunk": chunks(report)[0]}
                notice = self._doubt(report, item, names)
            except SpicegraphError as error:
                notice = str(error)
        plain, metrics = by_category(item.scores)
        return {
            "item": item,
            "key": key,
            "systems": [system.name for system in self._table.systems],
            "drawn": drawn,
            "notice": notice,
            "source": self._sources([item.id]).get(item.id),
            "scores": [(name, item.scores[name]) for name in plain],
            "tables": category_tables(metrics, item.scores),
            "address": _address(query, start),
            "steps": [None if step is None else f"{step}{_address(query, 0)}" for step in steps],
            "position": position,
            "total": len(order),
        }

    @staticmethod
    def _doubt(report: Report, item: ItemValues, names: Mapping[int, str]) -> str:
        """Return a warning where the SPICE of the drawn graphs is not the one in the file."""
        scores = item.scores.get("SPICE") or item.scores.get("All_f") or ()
        for (place, name), view in zip(names.items(), report.images[0].candidates, strict=True):
            told = scores[place] if scores else None
            drawn = view.scores[0]
            if told is not None and drawn is not None and abs(told - drawn) > _EQUAL:
                return (
                    f"The file says SPICE {told:.3f} for {name}; what is drawn has {drawn:.3f}. Give view the options "
                    "that score was given: --spice-text, --graph-style, --pipeline."
                )
        return ""


def _grouped(
    metrics: Mapping[str, Mapping[str, Mapping[str, str]]],
) -> Iterator[tuple[str, str, list[tuple[str, str, str]]]]:
    """Yield each metric with its heading, and its columns: name, text and part."""
    for metric, categories in metrics.items():
        columns = [
            (name, f"{category}: {PARTS[part]}", part)
            for category, parts in categories.items()
            for part, name in parts.items()
        ]
        yield metric, f"{metric} by category".strip(), columns


def choices(names: Iterable[str]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the options of a score menu: columns with labels, grouped by heading."""
    plain, metrics = by_category(names)
    groups = [
        (heading, [(name, f"{metric} {text}".strip()) for name, text, _ in columns])
        for metric, heading, columns in _grouped(metrics)
    ]
    return [("", [(name, name) for name in plain]), *groups]


def category_tables(
    metrics: Mapping[str, Mapping[str, Mapping[str, str]]], scores: Mapping[str, Sequence[float | None]]
) -> list[dict[str, Any]]:
    """Return for each metric with categories a table: a row per category and part, a column per system."""
    return [
        {
            "title": heading,
            "rows": [
                (text, [int(v) if v is not None and part in _COUNTS else v for v in scores[name]])
                for name, text, part in columns
            ],
        }
        for _, heading, columns in _grouped(metrics)
    ]


def _address(query: Query, start: int) -> str:
    asked = {
        "q": query.text,
        "score": query.score,
        "system": str(query.system),
        "low": "" if query.low is None else f"{query.low:g}",
        "high": "" if query.high is None else f"{query.high:g}",
        "order": query.order,
        "start": str(start or ""),
    }
    return "?" + urlencode({name: value for name, value in asked.items() if value})


def _number(text: str) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None


def _neighbours(keys: Keys, key: int) -> tuple[int | None, list[int | None]]:
    """Return where an item stands in a list, if it does, and the keys of the items before and behind it."""
    (places,) = np.nonzero(keys == key)
    if not len(places):
        return None, [None, None]
    position = int(places[0])
    return position, [int(keys[n]) if 0 <= n < len(keys) else None for n in (position - 1, position + 1)]
