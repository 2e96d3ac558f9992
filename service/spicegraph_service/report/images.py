"""The drill-down of an image: tuples, where their words stand, why they are unmatched, graphs, sentences, objects."""

from __future__ import annotations

import base64
import os
import re
from collections import defaultdict
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from spicegraph_parser.caption_pipeline.analyser import read_tokens
from spicegraph_parser.errors import InputError
from spicegraph_parser.export.picture import lay_out
from spicegraph_parser.pipelines import CaptionPipeline
from spicegraph_parser.spice.graph import Attribute, Relation, SceneGraph, SceneObject, SceneTuple
from spicegraph_parser.spice.parse import find_spans, normalise
from spicegraph_parser.spice.wordnet import Synset, load_wordnet
from spicegraph_scorer.core.facts import FactSource, FunctionSource
from spicegraph_scorer.errors import KINDS, ErrorSide, Finding
from spicegraph_service.engines.local import ParseSource
from spicegraph_service.report import data
from spicegraph_service.store import StoredParse, stored_parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spicegraph_parser.export.picture import Card
    from spicegraph_parser.spice.index import Concept
    from spicegraph_parser.spice.rules import Fact
    from spicegraph_scorer.core.items import Item, ItemId
    from spicegraph_scorer.metrics.spice.match import Match
    from spicegraph_scorer.metrics.spice.metric import SpiceStatistic

Span = tuple[int, int]


def with_spans(source: FactSource, spans: dict[str, tuple[Span, ...]]) -> FunctionSource:
    """Return a source that also fills in where each word stands in each caption, from the score's own parses."""

    def facts(texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        parses: Iterable[StoredParse]
        wanted = list(texts)
        if isinstance(source, CaptionPipeline):
            parses = map(stored_parse, source.captions(wanted))
        elif isinstance(source, ParseSource):
            parses = source.parses(wanted)
        else:  # what gives facts alone knows no places
            parses = (StoredParse(facts, ()) for facts in source.facts(wanted))
        for text, parse in zip(wanted, parses, strict=True):
            spans[text] = parse.spans
            yield parse.facts

    return FunctionSource(source.signature, facts, getattr(source, "language", None))


def mentions(
    scene_tuple: SceneTuple, captions: Sequence[str], spans: Mapping[str, tuple[Span, ...]]
) -> tuple[data.Mention, ...]:
    """Return where a tuple stands in the captions of its side; of an object only its own words."""
    known: dict[tuple[int, str, tuple[Span, ...]], data.Mention] = {}
    size = len(scene_tuple.concepts)
    for caption, fact in scene_tuple.evidence:
        words = spans.get(captions[caption], ())
        tokens: list[int] = []
        for word, positions in zip(fact.words, fact.tokens, strict=False):
            if size > 1 or word in scene_tuple.concepts[0].strings:
                tokens += positions
        marked = tuple(sorted({words[t] for t in tokens if t < len(words) and words[t][0] >= 0}))
        known.setdefault((caption, fact.rule if size > 1 else "", marked), data.Mention(caption, fact.rule, marked))
    return tuple(known.values())


_PARTS = {1: ("nvar",), 2: ("nvar", "anvr"), 3: ("nvar", "vnar", "nvar")}  # Parts of speech by slot, likeliest first.


def candidate_view(
    item: Item, statistic: SpiceStatistic, findings: Sequence[Finding], spans: Mapping[str, tuple[Span, ...]]
) -> data.CandidateView:
    """Return the view of one system's caption by SPICE."""
    match = statistic.match
    explained = {(KINDS[finding.kind].side, finding.tuple): finding for finding in findings}
    candidate = tuple(
        _view(t, (item.candidate,), spans, partners, explained.get((ErrorSide.INVENTED, i)), others=match.reference)
        for i, (t, partners) in enumerate(zip(match.candidate, match.candidate_partners, strict=True))
    )
    reference = tuple(
        _view(t, item.references, spans, partners, explained.get((ErrorSide.MISSED, i)))
        for i, (t, partners) in enumerate(zip(match.reference, match.reference_partners, strict=True))
    )
    near = frozenset(
        number for (side, number), finding in explained.items() if side is ErrorSide.INVENTED and finding.near
    )
    return data.CandidateView(
        item.candidate,
        tuple(statistic.f1(category) for category in statistic.counts),
        candidate,
        reference,
        overlay(match, near=near),
        counts=tuple(statistic.counts.values()),
        description=description_view(item, match, candidate, reference),
    )


def _view(
    scene_tuple: SceneTuple,
    captions: Sequence[str],
    spans: Mapping[str, tuple[Span, ...]],
    partners: tuple[int, ...],
    finding: Finding | None,
    *,
    others: Sequence[SceneTuple] = (),
) -> data.TupleView:
    """Return the view of a tuple; for one of a candidate, ``others`` are the references' tuples."""
    how: tuple[int, ...] = ()
    if partners and others:
        concepts = scene_tuple.concepts
        how = tuple(
            0 if set(concept.strings) & set(other.strings) else connecting_synset(concept, other, likely)
            for concept, other, likely in zip(
                concepts, others[partners[0]].concepts, _PARTS[len(concepts)], strict=True
            )
        )
    return data.TupleView(
        scene_tuple.strings,
        mentions(scene_tuple, captions, spans),
        partners,
        how,
        finding.kind if finding else None,
        finding.counterpart if finding else None,
        str(finding.near) if finding and finding.near else None,
        _merged(scene_tuple.concepts[0]) if len(scene_tuple.concepts) == 1 else (),
    )


def _merged(concept: Concept) -> tuple[int, ...]:
    """Return the synsets that connect the names of an object, each with the first that it shares one with."""
    if len(concept.strings) == 1:
        return ()
    first, *others = map(_senses, concept.strings)
    earlier = set(first)
    numbers: dict[int, None] = {}
    for senses in others:
        shared = next((sense for sense in senses if sense in earlier), None)
        if shared is not None:
            numbers[shared.number] = None
        earlier.update(senses)
    return tuple(numbers)


@lru_cache(maxsize=10_000)
def _senses(name: str) -> tuple[Synset, ...]:
    return load_wordnet().senses(name, "nvar")


def _box(
    index: int,
    card: Card,
    of: tuple[Concept, data.TupleState, int],
    attributes: Sequence[tuple[int, Concept, data.TupleState, int]],
) -> data.CardPicture:
    """Return an object's card with its attributes, each with its own state."""
    states = [(state, number) for owner, _, state, number in attributes if owner == index]
    stated = tuple((name, *rest) for name, rest in zip(card.attributes, states, strict=True))
    corner = (int(card.x), int(card.y), int(card.width), int(card.height))
    return data.CardPicture(card.name, of[1], *corner, stated, of[2])


def _route(cards: Sequence[Card]) -> tuple[tuple[int, int], ...]:
    """Return the points of an arrow's line, from the side of its first card to that of its last."""
    first, *between, last = cards
    ends = (first.right, last.x) if first.x <= last.x else (first.x, last.right)
    if first.x == last.x:
        ends = first.right, last.right
    points = [(ends[0], first.port), *((card.x, card.port) for card in between), (ends[1], last.port)]
    return tuple((int(x), int(y)) for x, y in points)


@dataclass(frozen=True, slots=True)
class _Drawing:
    """Both graphs of a match, laid over each other: concepts, each with its state and its tuple's number."""

    objects: list[tuple[Concept, data.TupleState, int]] = field(default_factory=list)
    attributes: list[tuple[int, Concept, data.TupleState, int]] = field(default_factory=list)
    relations: list[tuple[int, int, Concept, data.TupleState, int]] = field(default_factory=list)

    def add(self, concepts: tuple[Concept, ...], nodes: dict[Concept, int], state: data.TupleState, index: int) -> None:
        """Add a tuple; ``nodes`` are the places of its side's objects, which come first."""
        if len(concepts) == 1:
            nodes[concepts[0]] = len(self.objects)
            self.objects.append((concepts[0], state, index))
        elif len(concepts) == 2:
            self.attributes.append((nodes[concepts[0]], concepts[1], state, index))
        else:
            self.relations.append((nodes[concepts[0]], nodes[concepts[2]], concepts[1], state, index))

    def picture(self) -> data.GraphPicture:
        """Give everything its place."""
        layout = lay_out(
            SceneGraph(
                tuple(SceneObject(concept, ()) for concept, *_ in self.objects),
                tuple(Attribute(of, concept, ()) for of, concept, *_ in self.attributes),
                tuple(Relation(a, b, concept, ()) for a, b, concept, *_ in self.relations),
            )
        )
        boxes = [_box(index, layout.cards[index], of, self.attributes) for index, of in enumerate(self.objects)]
        labels: defaultdict[tuple[int, int], list[tuple[str, data.TupleState, int]]] = defaultdict(list)
        for a, b, concept, state, number in self.relations:
            labels[a, b].append((concept.label, state, number))
        lines = [
            data.ArrowPicture(
                tuple(labels[arrow.route[0], arrow.route[-1]]), _route([layout.cards[index] for index in arrow.route])
            )
            for arrow in layout.arrows
        ]
        return data.GraphPicture(int(layout.width), int(layout.height), tuple(boxes), tuple(lines))


def overlay(match: Match, *, near: frozenset[int] = frozenset()) -> data.GraphPicture:
    """Lay both graphs of a match over each other; ``near`` are the candidate's tuples that are almost right."""
    drawing = _Drawing()
    # The references' objects, those of the candidate that they lack, and by either side's concepts the places of both.
    of_reference: dict[Concept, int] = {}
    of_candidate: dict[Concept, int] = {}
    for length in (1, 2, 3):  # objects before what refers to them
        for index, reference in enumerate(match.reference):
            if len(reference.concepts) == length:
                state = data.TupleState.MATCHED if match.reference_partners[index] else data.TupleState.MISSED
                drawing.add(reference.concepts, of_reference, state, index)
        for index, candidate in enumerate(match.candidate):
            partners = match.candidate_partners[index]
            if len(candidate.concepts) == length and not partners:
                state = data.TupleState.NEAR if index in near else data.TupleState.INVENTED
                drawing.add(candidate.concepts, of_candidate, state, index)
            elif length == 1 and partners:
                partner = match.reference[partners[0]].concepts[0]
                of_candidate[candidate.concepts[0]] = of_reference[partner]
    return drawing.picture()


def connecting_synset(concept: Concept, other: Concept, parts: str) -> int:
    """Return the number of a synset that two concepts share: of several, the most frequent sense."""
    wordnet = load_wordnet()
    known = {sense for string in other.strings for sense in wordnet.senses(string)}
    shared = (sense for string in concept.strings for sense in wordnet.senses(string, parts) if sense in known)
    # Two words may share a bare number that is a noun's synset for one and a verb's for the other.
    return next((sense.number for sense in shared), min(concept.synsets & other.synsets))


def synset_views(images: Iterable[data.ImageView]) -> dict[int, tuple[dict[str, str], ...]]:
    """Return names and glosses of the synsets that connect tuples, by synset number."""
    views = (t for image in images for c in image.candidates for t in (*c.candidate, *c.reference))
    numbers = {n for view in views for n in (*view.how, *view.merged) if n}
    return {number: _readings(number) for number in sorted(numbers)}


def _readings(number: int) -> tuple[dict[str, str], ...]:
    wordnet = load_wordnet()
    return tuple({"name": wordnet.name(s), "gloss": wordnet.gloss(s)} for s in wordnet.readings(number))


_ID = re.compile(r"\{id(?::(0?\d{1,3}))?\}")
_WEB = re.compile(r"https?://", re.IGNORECASE)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:", re.IGNORECASE)
_ENDINGS = frozenset({".jpg", ".jpeg", ".png", ".webp", ".gif", ".avif"})
_NUMBER = re.compile(r"(\d+)$")


@dataclass(frozen=True, slots=True)
class Pictures:
    """How a page shows images."""

    pattern: str  # a folder (file names are ids or end in them), or an address with ``{id}`` or ``{id:012}``
    url: str | None = None  # where the folder's files will stand; ``None``: as they are, beside the page
    embed: bool = False  # put the folder's files into the page
    page: Path = field(default_factory=Path)  # the folder in which the page will be

    def address(self, file: Path) -> str:
        """Return the URL of an image file for the page."""
        if self.embed:
            kind = "jpeg" if file.suffix.lower() == ".jpg" else file.suffix.lower()[1:]
            try:
                return f"data:image/{kind};base64,{base64.b64encode(file.read_bytes()).decode()}"
            except OSError as error:
                raise InputError(f"{file}: can't be read ({error.strerror})") from error
        if self.url is not None:
            return f"{self.url.rstrip('/')}/{quote(file.name)}"
        return quote(Path(os.path.relpath(file, self.page.absolute())).as_posix())


def image_sources(pictures: Pictures, ids: Iterable[ItemId]) -> dict[ItemId, str]:
    """Return the address of each image that has one."""
    pattern, url = pictures.pattern, pictures.url
    if url is not None and not _WEB.match(url) and _SCHEME.match(url):
        raise InputError(f"--images-url {url!a}: only http and https addresses, and paths, can be shown")
    if _ID.search(pattern):
        _check_pattern(pictures)
        return {image_id: _filled(pattern, image_id) for image_id in ids}
    folder = Path(pattern)
    if not folder.is_dir():
        raise InputError(f"images {pattern!a}: is neither a folder nor an address with {{id}} in it")
    files = _pictures_in(folder.absolute(), folder.stat().st_mtime_ns)
    return {image_id: pictures.address(files[str(image_id)]) for image_id in ids if str(image_id) in files}


def _check_pattern(pictures: Pictures) -> None:
    """Refuse a pattern of addresses that pages do not show, or that does not go with other options."""
    pattern = pictures.pattern
    if pictures.embed or pictures.url is not None:
        option = "--embed-images" if pictures.embed else "--images-url"
        raise InputError(f"{option}: images {pattern!a} are addresses already; it takes a folder")
    if _SCHEME.match(pattern) and not _WEB.match(pattern):
        raise InputError(f"images {pattern!a}: only http and https addresses, and paths, can be shown")


def _filled(pattern: str, image_id: ItemId) -> str:
    return _ID.sub(lambda match: quote(str(image_id).zfill(int(match[1] or 0)), safe=""), pattern)


@lru_cache(maxsize=4)  # the viewer asks for each of its pages
def _pictures_in(folder: Path, _changed: int) -> dict[str, Path]:
    """Return the pictures of a folder by their names without endings, and by the numbers that names end in."""
    files: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() in _ENDINGS:
            files.setdefault(path.stem, path)
            if number := _NUMBER.search(path.stem):
                files.setdefault(str(int(number[1])), path)
    return files


def description_view(
    item: Item, match: Match, candidate: Sequence[data.TupleView], reference: Sequence[data.TupleView]
) -> dict[str, data.SideView] | None:
    """Return both sides by sentence and by object; ``None`` where no caption of the item has several sentences."""
    if all(len(sentence_spans(text)) < 2 for text in (item.candidate, *item.references)):
        return None
    return {
        "candidate": data.SideView(_sentences((item.candidate,), candidate), _objects(match.candidate)),
        "reference": data.SideView(_sentences(item.references, reference), _objects(match.reference)),
    }


@lru_cache(maxsize=1024)  # of the references, which all systems share
def sentence_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Return where the sentences of a caption stand in it, in code points."""
    if "\n" in text:  # a set of captions has each in a line
        lines = text.split("\n")
        starts = accumulate((len(line) + 1 for line in lines), initial=0)
        return tuple((at + a, at + b) for line, at in zip(lines, starts, strict=False) for a, b in sentence_spans(line))
    read = read_tokens(text, normalise(text))
    spans = list(find_spans(read.forms, text)) if isinstance(read.spans, str) else list(read.spans)
    sentences = []
    for first, behind in pairwise(accumulate(read.lengths, initial=0)):
        known = [span for span in spans[first:behind] if span[0] >= 0]
        if known:
            sentences.append((known[0][0], known[-1][1]))
    return tuple(sentences)


def _sentences(texts: Sequence[str], views: Sequence[data.TupleView]) -> tuple[tuple[data.SentenceView, ...], ...]:
    """Return the sentences of each text with the tuples that have a word there."""
    said: defaultdict[tuple[int, Span], dict[int, None]] = defaultdict(dict)
    for index, view in enumerate(views):
        for mention in view.mentions:
            for span in sentence_spans(texts[mention.caption]):
                if any(span[0] <= start < span[1] for start, _ in mention.spans):
                    said[mention.caption, span][index] = None
    return tuple(
        tuple(
            data.SentenceView(
                *span, tuple(said[caption, span]), sum(bool(views[i].partners) for i in said[caption, span])
            )
            for span in sentence_spans(text)
        )
        for caption, text in enumerate(texts)
    )


def _objects(graph: Sequence[SceneTuple]) -> tuple[data.ObjectView, ...]:
    """Return every object with the tuples about it, those of which most is said first."""
    about: dict[int, defaultdict[Concept, list[int]]] = {2: defaultdict(list), 3: defaultdict(list)}
    for index, each in enumerate(graph):
        if len(each.concepts) > 1:
            for concept in dict.fromkeys((each.concepts[0], *each.concepts[2:])):
                about[len(each.concepts)][concept].append(index)
    views = [
        data.ObjectView(index, *(tuple(about[length][each.concepts[0]]) for length in (2, 3)))
        for index, each in enumerate(graph)
        if len(each.concepts) == 1
    ]
    return tuple(sorted(views, key=lambda view: len(view.attributes) + len(view.relations), reverse=True))
