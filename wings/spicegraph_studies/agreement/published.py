"""Formats of published sets: Flickr8k, Composite, Polaris, PASCAL-50S, SugarCrepe, VALSE, FOIL, D-FOIL, FENSE."""

from __future__ import annotations

import ast
import csv
import io
import re
from dataclasses import dataclass, replace
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

import numpy as np
import scipy

from spicegraph_parser.errors import InputError, LimitError
from spicegraph_scorer.readers.checks import Fault, shown
from spicegraph_scorer.readers.source import DEFAULT_LIMITS
from spicegraph_studies.agreement.judgements import CaptionPair, Judgement
from spicegraph_studies.agreement.records import Content, JudgementRow, field_of, is_number, pairs_of_records, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from spicegraph_studies.agreement.records import CaptionBank

Rated: TypeAlias = "Iterator[Judgement | None]"  # the rated captions of a file; ``None``: a row without a rating
Chosen: TypeAlias = "Iterator[CaptionPair | None]"  # the pairs of a file; ``None``: a row that is left out

_CAPTION_ID = re.compile(r"[^\t]+#\d+")
_IMAGE_COLUMN = "Input.image_url"
_TEXT_COLUMN = re.compile(r"Input\.text(\d+)")
_POLARIS_TEXTS: Final = ("mt", "cand")  # the columns and keys of captions, by the published set
_TRIPLETS = "consensus_pascal.mat"  # of PASCAL-50S
_PAIRS = "pair_pascal.mat"
_CATEGORIES = {1: "HC", 2: "HI", 3: "HM", 4: "MM"}
_WRONG: Final = ("negative_caption", "foil")  # of SugarCrepe and VALSE, as the next
_IMAGES: Final = ("filename", "image_file")
_FENSE_PAIR: Final = re.compile(r"(HC|HI|HM|MM)(_\d+)?")
_CORRECTED: Final = ("human_corrected_hall_caption", "hall_caption")  # of D-FOIL
AnyJudged = TypeVar("AnyJudged", Judgement, CaptionPair)


def grouped_judgements(content: Content, _bank: CaptionBank, faults: list[Fault]) -> Rated:
    """Read ``{image: {"human_judgement": [{"caption", "rating"}], "ground_truth": [caption]}}``."""
    for image, row in _rows_by_name(content, "image", faults):
        references = row.references(("ground_truth",))
        judged = row.fields.get("human_judgement")
        if not isinstance(judged, list):
            row.fault("human_judgement", "is not a list")
            continue
        last: Judgement | None = None  # raters of one caption follow each other
        for caption, ratings in _ratings(row.place, judged, faults):
            if not ratings:
                yield None
            elif last is not None and last.candidate == caption:
                last = replace(last, ratings=(*last.ratings, *ratings))
            else:
                if last is not None:
                    yield last
                last = Judgement(row.place, image, caption, references, ratings)
        if last is not None:
            yield last


def _rows_by_name(content: Content, what: str, faults: list[Fault]) -> Iterator[tuple[str, JudgementRow]]:
    """Yield the objects that a JSON object has, with their names; nothing of other values."""
    for name, entry in content.value.items() if isinstance(content.value, dict) else ():
        yield name, JudgementRow(f"{what} {shown(name)}", entry if isinstance(entry, dict) else {}, faults)


def _ratings(place: str, judged: Sequence[object], faults: list[Fault]) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Yield captions with their ratings, by one rater or several."""
    for index, value in enumerate(judged):
        part = JudgementRow(f"{place}, human_judgement[{index}]", value if isinstance(value, dict) else {}, faults)
        caption = part.caption(("caption",))
        if "rating" in part.fields:
            yield caption, part.numbers("rating")
        else:
            part.fault("rating", "is missing")


def is_flickr8k(content: Content) -> bool:
    """Say whether a file is one of Flickr8k's annotations: image, ``image#number`` and three numbers a line."""
    line = content.data.lstrip().split(b"\n", 1)[0].decode(errors="replace").rstrip("\r")
    cells = line.split("\t")
    return len(cells) == 5 and _CAPTION_ID.fullmatch(cells[1]) is not None


def flickr8k_judgements(content: Content, bank: CaptionBank, faults: list[Fault]) -> Rated:
    """Read ``ExpertAnnotations.txt`` (three ratings, 1 to 4) or ``CrowdFlowerAnnotations.txt`` (share, yes, no)."""
    rows: list[tuple[str, str, str, tuple[float, float, float]]] = []
    for number, line in enumerate(text_of(content).splitlines(), start=1):
        if not line.strip():
            continue
        place = f"line {number}"
        cells = line.split("\t")
        try:
            image, caption, *numbers = cells
            first, second, third = map(float, numbers)
        except ValueError:
            faults.append(Fault(place, "", "is not: image, caption id and three numbers, separated by tabs"))
            continue
        rows.append((place, image, caption, (first, second, third)))
    shares = bool(rows) and all(
        yes + no > 0 and abs(share - yes / (yes + no)) < 1e-4 for _, _, _, (share, yes, no) in rows
    )
    for place, image, caption_id, ratings in rows:
        row = JudgementRow(place, {}, faults)
        caption, references = bank.caption(caption_id, row), bank.references(image, row)
        yield Judgement(place, image, caption, references, ratings[:1] if shares else ratings)


def composite_judgements(content: Content, bank: CaptionBank, faults: list[Fault]) -> Rated:
    """Read ``8k_correctness.csv`` and its like: ``Input.image_url``, ``Input.text1`` ..., ``Answer.Q1Answer`` ..."""
    header, *lines = csv.reader(io.StringIO(text_of(content)), delimiter=";")
    columns = [name.strip() for name in header]
    numbers = _composite_numbers(content.name, columns)
    for line, cells in enumerate(lines, start=2):
        values = dict(zip(columns, cells, strict=False))
        address = values.get(_IMAGE_COLUMN, "").strip()
        if not address:
            yield None
            continue
        row = JudgementRow(f"line {line}", {}, faults)
        image = PurePosixPath(address).name
        references = bank.references(image, row)
        for number in numbers:
            answer, text = values.get(f"Answer.Q{number}Answer", "").strip(), values.get(f"Input.text{number}", "")
            if not answer or not text.strip():
                yield None
                continue
            part = JudgementRow(f"{row.place}, caption {number}", {}, faults)
            caption = part.checked_caption(f"Input.text{number}", text)
            try:
                rating = float(answer)
            except ValueError:
                part.fault(f"Answer.Q{number}Answer", f"is {shown(answer)}, expected a number")
                continue
            yield Judgement(part.place, image, caption, references, (rating,))


def _composite_numbers(name: str, columns: Sequence[str]) -> list[str]:
    """Return the numbers of the columns of captions, each of which needs one of answers."""
    numbers = [match[1] for column in columns if (match := _TEXT_COLUMN.fullmatch(column))]
    missing = [f"Answer.Q{number}Answer" for number in numbers if f"Answer.Q{number}Answer" not in columns]
    if missing or not numbers:
        raise InputError(f"{name}: has no column {missing[0] if missing else 'Input.text1'}")
    return numbers


def is_polaris(content: Content) -> bool:
    """Say whether a file is Polaris's or Nebula's table: comma-separated, with a column ``refs``."""
    names = content.data.split(b"\n", 1)[0].decode(errors="replace").strip().split(",")
    return "refs" in names and any(name in names for name in _POLARIS_TEXTS)


def polaris_judgements(content: Content, _bank: CaptionBank, faults: list[Fault]) -> Rated:
    """Read ``polaris_test.csv`` and its like; ``refs`` is a list of strings as Python or JSON writes it."""
    for number, cells in enumerate(csv.DictReader(io.StringIO(text_of(content))), start=1):
        row = JudgementRow(f"row {number}", cells, faults)
        candidate = row.caption(_POLARIS_TEXTS)
        try:
            listed = ast.literal_eval(cells["refs"] or "")
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            row.fault("refs", f"is {shown(cells['refs'])}, expected a list of strings")
            continue
        references = JudgementRow(row.place, {"refs": listed}, faults).references(("refs",))
        name = field_of(cells, ("score", "human_score"))
        try:
            rating = float(cells[name])
        except (KeyError, TypeError, ValueError):
            row.fault(name, f"is {shown(cells.get(name))}, expected a number")
            continue
        image = row.image(("imgid", "img", "image_id")) or "\n".join(references)
        yield Judgement(row.place, image, candidate, references, (rating,))


def is_pascal50s(path: str) -> bool:
    """Say whether a path is the folder with both files, or the first of them."""
    return Path(path).is_dir() or path.lower().endswith(".mat")


def read_pascal50s(path: str) -> tuple[CaptionPair, ...]:
    """Read ``consensus_pascal.mat`` and ``pair_pascal.mat``, which stand side by side."""
    # The first holds triplets (reference A, candidates B and C, 1 where B is more similar to A and -1 where C is):
    # those of one pair follow each other, and most decide. The second has each pair's image and kind.
    folder = Path(path) if Path(path).is_dir() else Path(path).parent
    triplets = _load(folder / _TRIPLETS, "triplets")
    kinds, images = (_load(folder / _PAIRS, name) for name in ("category", "new_input"))
    try:
        rows = [
            (_text(reference), _text(first), _text(second), int(np.ravel(winner)[0]) == 1)
            for reference, first, second, winner in np.ravel(triplets)
        ]
        categories = [_CATEGORIES[int(kind)] for kind in np.ravel(kinds)]
        names = [_text(row[0]) for row in np.ravel(images)]
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{folder}: is not PASCAL-50S as published ({type(error).__name__}: {error})") from error
    grouped = _by_pair(rows, len(categories))
    if len(names) != len(categories):
        raise InputError(f"{folder / _PAIRS}: has {len(names)} pairs and {len(categories)} categories")
    return tuple(
        _pair_of_votes(f"pair {number}", image, category, group)
        for number, (image, category, group) in enumerate(zip(names, categories, grouped, strict=True), start=1)
    )


_Triplet: TypeAlias = "tuple[str, str, str, bool]"  # a reference, two captions, and whether the first is preferred


def _by_pair(triplets: Sequence[_Triplet], pairs: int) -> list[Sequence[_Triplet]]:
    """Return the triplets of each pair, which follow each other."""
    size, rest = divmod(len(triplets), pairs) if pairs else (0, 1)
    if rest or not size:
        raise InputError(f"{len(triplets)} triplets don't belong to {pairs} pairs in equal numbers")
    grouped = [triplets[start : start + size] for start in range(0, len(triplets), size)]
    for number, group in enumerate(grouped, start=1):
        if len({(first, second) for _, first, second, _ in group}) > 1:
            raise InputError(f"the triplets of pair {number} hold different candidates")
    return grouped


def _pair_of_votes(place: str, image: str, category: str, triplets: Sequence[_Triplet]) -> CaptionPair:
    votes = sum(1 if first_wins else -1 for *_, first_wins in triplets)
    _, first, second, _ = triplets[0]
    references = tuple(reference for reference, *_ in triplets)
    return CaptionPair(place, image, category, (first, second), _preferred(votes), references)


def _preferred(balance: float) -> int | None:
    """Return which caption has more votes, by how many the first has more; ``None``: neither."""
    return None if balance == 0 else int(balance < 0)


def _load(path: Path, name: str) -> Any:
    try:
        if path.stat().st_size > DEFAULT_LIMITS.content:
            raise LimitError(f"{path}: is larger than {DEFAULT_LIMITS.content:,} bytes")
        content = scipy.io.loadmat(str(path))
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file") from error
    except (OSError, ValueError, TypeError, NotImplementedError, scipy.io.matlab.MatReadError) as error:
        raise InputError(f"{path}: is not a MATLAB file that can be read ({error})") from error
    if name not in content:
        raise InputError(f"{path}: contains no variable {name!r}")
    return content[name]


def _text(value: Any) -> str:
    """Return the one string in nested cells."""
    while isinstance(value, np.ndarray):
        value = value.flat[0]
    if not isinstance(value, str) or not value.strip():
        raise ValueError("a caption is not text")
    return value.strip()


def negative_pairs(content: Content, bank: CaptionBank, faults: list[Fault]) -> Chosen:
    """Read ``{id: {"filename", "caption", "negative_caption"}}`` (SugarCrepe), ``image_file`` and ``foil`` (VALSE)."""
    for _, row in _rows_by_name(content, "pair", faults):
        captions = row.caption(("caption",)), row.caption(_WRONG)
        image = row.image(_IMAGES)
        if image is None:
            row.fault(field_of(row.fields, _IMAGES), "is missing")
        references = bank.references(image, row) if image is not None else ()
        votes = row.number("mturk.caption", row.mapping("mturk").get("caption"))
        if votes is not None and votes < 2:  # of VALSE's annotators: such pairs are not in its valid set
            yield None
            continue
        category = row.text("linguistic_phenomena") or PurePath(content.name).stem
        yield CaptionPair(row.place, image or "", category, captions, 0, references)


def foil_pairs(content: Content, bank: CaptionBank, faults: list[Fault]) -> Chosen:
    """Read FOIL's ``annotations``: every foil against the true caption of the same ``id``; one category."""
    rows = [JudgementRow(f"annotations[{place}]", entry, faults) for place, entry in enumerate(_annotations(content))]
    true = {shown(row.fields.get("id")): row for row in rows if row.fields.get("foil") is False}
    for row in rows:
        if row.fields.get("foil") is not True:
            if not isinstance(row.fields.get("foil"), bool):
                row.fault("foil", f"is {shown(row.fields.get('foil'))}, expected true or false")
            continue
        other = true.get(shown(row.fields.get("id")))
        if other is None:
            row.fault("id", f"{shown(row.fields.get('id'))} has no true caption")
            continue
        image = row.image(("image_id",)) or ""
        captions = other.caption(("caption",)), row.caption(("caption",))
        yield CaptionPair(row.place, image, "", captions, 0, bank.references(image, row))


def fense_pairs(content: Content, _bank: CaptionBank, faults: list[Fault]) -> Chosen:
    """Read ``audiocaps_eval.json`` or ``clotho_eval.json``: by kind (``MM_1``), two captions, their sources, votes."""
    for place, entry in enumerate(_rows(content.value)):
        row = JudgementRow(f"item {place + 1}", entry, faults)
        references, image = row.references(("references",)), row.image(("raw_name", "audio_id")) or f"{place}"
        for name, value in entry.items():
            kind = _FENSE_PAIR.fullmatch(name)
            if kind is None:
                continue
            votes = value[-1] if isinstance(value, list) and len(value) == 5 else None
            if not isinstance(votes, list) or not isinstance(value, list) or not all(map(is_number, votes)):
                row.fault(name, "is not a list of two captions, their two sources and a list of votes")
                continue
            captions = row.checked_caption(f"{name}[0]", value[0]), row.checked_caption(f"{name}[1]", value[1])
            yield CaptionPair(f"{row.place}, {name}", image, kind[1], captions, _preferred(sum(votes)), references)


def discofoil_pairs(content: Content, _bank: CaptionBank, faults: list[Fault]) -> Chosen:
    """Read ``DiscourseFOIL-200.json``; descriptions that were not corrected (``fixed``) are counted and left out."""
    for place, entry in enumerate(_rows(content.value)):
        row = JudgementRow(f"item {place + 1}", entry, faults)
        if str(entry.get("fixed", "true")).lower() != "true":
            yield None
            continue
        captions = row.caption(_CORRECTED[:1]), row.caption(_CORRECTED[1:])
        reference = row.caption(("caption",))
        yield CaptionPair(row.place, row.image(("image_id",)) or row.place, "", captions, 0, (reference,))


def _rows(value: object) -> list[Mapping[str, object]]:
    """Return the objects of a JSON list; nothing of other values."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def _entries(content: Content) -> list[Mapping[str, object]]:
    """Return the objects that a JSON object has; nothing of other values."""
    return _rows(list(content.value.values())) if isinstance(content.value, dict) else []


def _annotations(content: Content) -> Iterator[Mapping[str, object]]:
    yield from _rows(content.value.get("annotations") if isinstance(content.value, dict) else None)


def is_by_category(content: Content) -> bool:
    """Say whether a file is one JSON object: by category (``HC``, ``HI`` ...), lists of pairs with a label."""
    lists = list(content.value.values()) if isinstance(content.value, dict) else []
    first = [rows[0] if isinstance(rows, list) and rows else None for rows in lists]
    return bool(first) and all(isinstance(row, dict) and {"captions", "label"} <= row.keys() for row in first)


def category_pairs(content: Content, _bank: CaptionBank, faults: list[Fault]) -> Chosen:
    """Read ``{category: [{"image", "captions", "label", "references"}]}``: PASCAL-50S of FLEUR and EXPERT."""
    records = [
        (f"{category}, item {number}", {**row, "category": category} if isinstance(row, dict) else {})
        for category, rows in (content.value.items() if isinstance(content.value, dict) else ())
        for number, row in enumerate(rows, start=1)
    ]
    return pairs_of_records(records, faults)


@dataclass(frozen=True, slots=True)
class JudgementFormat(Generic[AnyJudged]):
    """A published format: how to tell and read it; ``needs``: its files' name in messages, if they lack references."""

    name: str
    recognises: Callable[[Content], bool]
    read: Callable[[Content, CaptionBank, list[Fault]], Iterator[AnyJudged | None]]
    needs: str = ""


JUDGEMENT_FORMATS: Sequence[JudgementFormat[Judgement]] = (
    JudgementFormat(
        "human_judgement by image (CLIPScore's flickr8k.json)",
        lambda content: any("human_judgement" in each for each in _entries(content)),
        grouped_judgements,
    ),
    JudgementFormat("Flickr8k annotations", is_flickr8k, flickr8k_judgements, "Flickr8k's annotations"),
    JudgementFormat(
        "Composite table",
        lambda content: _IMAGE_COLUMN.encode() in content.data.split(b"\n", 1)[0],
        composite_judgements,
        "Composite's tables",
    ),
    JudgementFormat("Polaris, Nebula", is_polaris, polaris_judgements),
)
"""Every published format of rated captions; the first that recognises a file reads it."""

PAIR_FORMATS: Sequence[JudgementFormat[CaptionPair]] = (
    JudgementFormat(
        "SugarCrepe, VALSE",
        lambda content: any("caption" in each and not each.keys().isdisjoint(_WRONG) for each in _entries(content)),
        negative_pairs,
        "SugarCrepe and VALSE",
    ),
    JudgementFormat(
        "FOIL", lambda content: any("foil" in row for row in _annotations(content)), foil_pairs, "FOIL's files"
    ),
    JudgementFormat(
        "AudioCaps-Eval, Clotho-Eval (FENSE)",
        lambda content: any("references" in row and ("HC" in row or "HM" in row) for row in _rows(content.value)),
        fense_pairs,
    ),
    JudgementFormat(
        "D-FOIL (DiscoSG)", lambda content: any(_CORRECTED[0] in row for row in _rows(content.value)), discofoil_pairs
    ),
    JudgementFormat("PASCAL-50S by category (FLEUR, EXPERT)", is_by_category, category_pairs),
)
"""Every published format of pairs but PASCAL-50S, whose path says it; the first that recognises a file reads it."""
