"""What a caption, a list of references and an image id must be, and the one error that lists an input's faults."""
# To add a check of captions: a predicate, a line in ``CAPTION_FAULTS``, a row in the test's table of bad input.
# A caption is taken for another language, which metrics score too, where most of its words are unknown to WordNet and a
# list of English function words, or where function words of other languages outnumber the English ones. Shorter words
# than four letters are looked up in the lists alone: WordNet has abbreviations such as "de", "la" and "un".

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from spicegraph_parser.errors import InputError, counted, kind_of
from spicegraph_parser.languages import find_language
from spicegraph_parser.spice.lexicon import load_lexicon
from spicegraph_parser.spice.parse import MAX_CAPTION_LENGTH
from spicegraph_scorer.core.items import CheckedItems, Item, ItemId, empty_candidates, marks_of, to_item
from spicegraph_scorer.readers.marks import ControlTokens, marks_notes, mind_marks
from spicegraph_scorer.readers.phrases import phrase_notes
from spicegraph_scorer.readers.printed import is_printed_list

if TYPE_CHECKING:
    from spacy.tokens import Doc

GivenItem: TypeAlias = Item | Mapping[str, Any] | tuple[Any, ...]  # What :func:`check_items` takes for an item.

SHOWN_FAULTS = 50  # How many faults an error spells out; the rest is counted.

_SHOWN_CHARACTERS = 60


class Fault(NamedTuple):
    """One thing wrong: where (``line 3 (image_id 7)``; empty: the file), in which field (empty: the item), and why."""

    item: str
    field: str
    reason: str

    def __str__(self) -> str:
        location = ", ".join(part for part in (self.item, self.field) if part)
        return f"{location}: {self.reason}" if location else self.reason


def input_error(source: str, faults: Sequence[Fault], *, hint: str = "", count: int | None = None) -> InputError:
    """Return the error that lists the first ``SHOWN_FAULTS`` of at least one fault, a count of all, and a hint."""
    count = len(faults) if count is None else count
    if count == 1:
        lines = [f"{source}: {faults[0]}"]
    else:
        listed = faults[:SHOWN_FAULTS]
        lines = [f"{source}: {count} faults", *(f"  {fault}" for fault in listed)]
        if count > len(listed):
            lines.append(f"  ... and {count - len(listed)} more")
    return InputError("\n".join([*lines, hint] if hint else lines))


def refuse_faults(source: str, faults: Sequence[Fault], *, nothing: str = "", hint: str = "") -> None:
    """Raise an input error if there are faults; ``nothing``: the message if there are none."""
    if not faults and nothing:
        faults = [Fault("", "", nothing)]
    if faults:
        raise input_error(source, faults, hint=hint)


def shown(value: object) -> str:
    r"""Return a value for a message: short, on one line, without characters that steer a terminal."""
    cut = value[:_SHOWN_CHARACTERS] if isinstance(value, str) else value
    text = ascii(cut)
    if text != ascii(value) or len(text) > 2 * _SHOWN_CHARACTERS:
        return f"{text[: 2 * _SHOWN_CHARACTERS]}..."
    return text


MAX_CAPTION = MAX_CAPTION_LENGTH  # Longest caption that is read, in characters: what the parser accepts.

_FILE_NAME = re.compile(r"[^\s]+\.(?:jpe?g|png|gif|bmp|webp|tiff?|wav|mp3|flac|mp4|avi|mkv|webm)", re.IGNORECASE)
# Words between single spaces: of the faults such a caption can only be too long, or the image's name.
_PLAIN = re.compile(r"[A-Za-z]++(?: [A-Za-z',]++)++\.?")
_INTEGER_DIGITS = 18

Names = tuple[str, ...]  # What an image is called: its id, and its file name where that is known.


def is_plain(caption: str) -> bool:
    """Say whether a caption is words between single spaces, which has no fault but to be an image's name."""
    return _PLAIN.fullmatch(caption) is not None and len(caption) <= MAX_CAPTION


def _is_empty(caption: str, _names: Names) -> bool:
    return not caption.strip()


def _is_name(caption: str, names: Names) -> bool:
    return bool(caption.strip()) and caption.strip() in names


def _has_nul(caption: str, _names: Names) -> bool:
    return "\0" in caption


def _has_surrogate(caption: str, _names: Names) -> bool:
    return not caption.isascii() and any("\ud800" <= character <= "\udfff" for character in caption)


CAPTION_FAULTS: Mapping[str, Callable[[str, Names], bool]] = {
    "is empty": _is_empty,
    "is the image's own id or file name, not a caption": _is_name,
    "is a file name, not a caption": lambda caption, names: (
        len(caption) < 300 and _FILE_NAME.fullmatch(caption.strip()) is not None and not _is_name(caption, names)
    ),
    "is a printed list, not one caption: give a list": lambda caption, _names: is_printed_list(caption),
    "holds a NUL character": _has_nul,
    "holds half of a surrogate pair, which is not a character": _has_surrogate,
    f"is longer than {MAX_CAPTION:,} characters": lambda caption, _names: len(caption) > MAX_CAPTION,
}  # Every fault that a caption can have, under the words that name it.

Empty = Literal["refuse", "zero"]  # It is a fault, or scores 0 as in the original programs.


def caption_faults(caption: object, names: Names = (), *, empty: Empty = "refuse") -> Iterator[str]:
    """Yield what is wrong with a caption; with ``empty="zero"`` an empty one is right."""
    if not isinstance(caption, str):
        within = ", that under its key 'caption'" if isinstance(caption, Mapping) and "caption" in caption else ""
        yield f"is {kind_of(caption)}, expected a string{within}"
        return
    if empty == "zero" and _is_empty(caption, names):
        return
    if _PLAIN.fullmatch(caption) and len(caption) <= MAX_CAPTION and caption not in names:
        return
    yield from (reason for reason, is_wrong in CAPTION_FAULTS.items() if is_wrong(caption, names))


def reference_faults(references: object, names: Names = ()) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a list of references, each as (index in brackets or nothing, reason)."""
    if not isinstance(references, list | tuple):
        yield "", f"is {kind_of(references)}, expected a list of strings"
    elif not references:
        yield "", "contains no reference"
    else:
        for index, reference in enumerate(references):
            for reason in caption_faults(reference, names):
                yield f"[{index}]", reason


def without_empty(references: object, *, drop: bool) -> tuple[object, int]:
    """Return references, if wanted without empty ones, and how many were dropped."""
    if not drop or not isinstance(references, list):
        return references, 0
    kept = [text for text in references if not isinstance(text, str) or text.strip()]
    return kept, len(references) - len(kept)


def as_id(value: object) -> object:
    """Return an id; 9.0, as pandas writes whole numbers beside missing ones, is 9, as far as such numbers are exact."""
    return int(value) if type(value) is float and value.is_integer() and abs(value) < 1 << 53 else value


def id_faults(value: object) -> Iterator[str]:
    """Yield what is wrong with an image id: an integer of at most 18 digits or a non-empty string."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        yield f"is {kind_of(value)}, expected an integer or a string"
    elif isinstance(value, int):
        if abs(value) >= 10**_INTEGER_DIGITS:
            yield f"has more than {_INTEGER_DIGITS} digits"
    elif not value.strip():
        yield "is empty"
    else:
        for reason, is_wrong in (
            ("holds a NUL character", _has_nul),
            ("holds half of a surrogate pair, which is not a character", _has_surrogate),
        ):
            if is_wrong(value, ()):
                yield reason


def label(location: str, image_id: object) -> str:
    """Name an item in a fault, as ``line 3 (image_id 7)``."""
    return f"{location} (image_id {shown(image_id)})"


def item_faults(item: Item, name: str, *, empty: Empty = "refuse") -> Iterator[Fault]:
    """Yield every fault of an item that was made in a program."""
    names = (str(item.id),)
    yield from (Fault(name, "id", reason) for reason in id_faults(item.id))
    yield from (Fault(name, "candidate", reason) for reason in caption_faults(item.candidate, names, empty=empty))
    for index, reason in reference_faults(item.references, names):
        yield Fault(name, f"references{index}", reason)


def check_items(
    items: Iterable[GivenItem], *, empty: Empty = "refuse", control_tokens: ControlTokens = "refuse", given: str = ""
) -> CheckedItems:
    """Return the items, at least one, if they can be scored together, whatever :func:`.to_item` reads as one.

    ``given``: the list whose places are the items' ids, which then name them in faults.
    """
    of_file = getattr(items, "items", None)
    items = of_file if isinstance(of_file, CheckedItems) else items
    faults: list[Fault] = []
    if isinstance(items, CheckedItems):  # minded already; what was kept on purpose can still be taken off
        checked = items
        if control_tokens == "strip" and items.marks.kept:
            checked = minded_items(items, faults, control_tokens, empty=empty)
    else:
        checked = CheckedItems(_given_items(items, faults))
        faults += _faults_of(checked, sound=not faults, empty=empty, given=given)
        if not faults:
            checked = minded_items(checked, faults, control_tokens, empty=empty)
    refuse_faults("captions" if given else "items", faults)
    return checked


def _faults_of(items: Sequence[Item], *, sound: bool, empty: Empty, given: str) -> Iterator[Fault]:
    """Yield the faults of items and their ids; ``sound``: no earlier faults were found."""
    if not items and sound:
        yield Fault("", "", "there are no items")
    first: dict[ItemId, int] = {}
    for index, item in enumerate(items):
        name = f"{given}[{index}]" if given else label(f"item {index + 1}", item.id)
        yield from item_faults(item, name, empty=empty)
        image: object = item.id  # programs give what is no id, too: a fault of its own
        earlier = first.setdefault(image, index) if isinstance(image, int | str) else index
        if earlier != index:
            yield Fault(name, "id", f"is also the id of item {earlier + 1}")


def minded_items(items: CheckedItems, faults: list[Fault], rule: ControlTokens, *, empty: Empty) -> CheckedItems:
    """Apply the control-token rule to items; violations are added to ``faults``."""
    minded, reason = mind_marks(items, rule)
    if reason:
        faults.append(Fault("", "", reason))
    if not reason:
        for number, (item, before) in enumerate(zip(minded, items, strict=True) if minded.marks else (), start=1):
            if item is not before:
                name = label(f"item {number}, without control tokens", item.id)
                faults += item_faults(item, name, empty=empty)
    return minded


def _given_items(given: object, faults: list[Fault]) -> Iterator[Item]:
    """Yield items from a caller's objects; invalid ones are added to ``faults``."""
    items = getattr(given, "items", None)
    if isinstance(given, Item):
        given = (given,)
    elif isinstance(items, tuple):  # a reader's data set
        given = items
    elif hasattr(given, "columns") and callable(to_records := getattr(given, "to_dict", None)):  # a table of pandas
        given = to_records("records")
    if isinstance(given, str | bytes | PathLike):
        raise input_error("items", [Fault("", "", f"{shown(str(given))} is not read here: give read_items(path)")])
    if isinstance(given, Mapping):
        reason = "is an object, expected a list of items; captions by id are given to score_captions"
        raise input_error("items", [Fault("", "", reason)])
    if not isinstance(given, Iterable):
        raise input_error("items", [Fault("", "", f"is {kind_of(given)}, expected a list of items")])
    for number, value in enumerate(given):
        try:
            yield to_item(value, number)
        except ValueError as error:
            faults.append(Fault(f"item {number + 1} ({shown(value)})", "", str(error)))


References: TypeAlias = "Sequence[str | Sequence[str]]"  # One, or a list, for every candidate.
Captions: TypeAlias = "str | Doc | Sequence[str | Doc]"  # One, or a list; a document stands for its text.
Candidates: TypeAlias = "Mapping[Any, Captions] | Iterable[str | Doc] | str | Doc"
"""Candidates by id (each a caption, or a list of one as in pycocoevalcap), in a list, or a single one."""


def _unlike_sides(candidates: object, references: object) -> Iterator[Fault]:
    """Yield what is wrong with two sides that are not both mappings, and not both lists."""
    for name, value, other in (("candidates", candidates, references), ("references", references, candidates)):
        if isinstance(other, Mapping) and isinstance(value, Iterable) and not isinstance(value, Mapping):
            yield Fault("", name, f"is {kind_of(value)}, expected an object, as the other is")
        elif isinstance(value, str | bytes) or not isinstance(value, Iterable):
            yield Fault("", name, f"is {kind_of(value)}, expected a list")


def paired_items(
    candidates: Candidates,
    references: Mapping[Any, Captions] | Iterable[Captions],
    *,
    empty: Empty = "refuse",
    control_tokens: ControlTokens = "refuse",
) -> CheckedItems:
    """Return the items of two parallel lists, or mappings by id; a single string is one candidate of all references."""
    if isinstance(candidates, str):
        return check_items([Item(0, candidates, _texts(references))], empty=empty, control_tokens=control_tokens)
    pairs: list[tuple[Any, Any, Any]]
    if isinstance(candidates, Mapping) and isinstance(references, Mapping):
        faults = [Fault(f"id {shown(i)}", "references", "is missing") for i in candidates if i not in references]
        faults += [Fault(f"id {shown(i)}", "candidates", "is missing") for i in references if i not in candidates]
        pairs = [
            (i, text[0] if isinstance(text, list | tuple) and len(text) == 1 else text, references[i])
            for i, text in candidates.items()
            if i in references
        ]
    else:
        if faults := list(_unlike_sides(candidates, references)):
            raise input_error("captions", faults)
        texts, groups = list(candidates), list(references)
        if len(texts) != len(groups):
            lists = counted(len(groups), "list of references", "lists of references")
            faults = [Fault("", "", f"{counted(len(texts), 'candidate')} and {lists} don't pair up")]
        pairs = [(number, *pair) for number, pair in enumerate(zip(texts, groups, strict=False))]
    refuse_faults("captions", faults)
    items = (Item(image, text, _texts(group)) for image, text, group in pairs)
    given = "" if isinstance(candidates, Mapping) else "pair"
    return check_items(items, empty=empty, control_tokens=control_tokens, given=given)


def _texts(group: Any) -> Any:
    return (group,) if isinstance(group, str) else group


_OTHERS = 0.1
_FEWEST = 5


def copies_note(source: str, items: Sequence[Item]) -> str | None:
    """Say that nine of ten candidates, or more, of five or more equal a reference of theirs but for spaces, if so."""
    if len(items) < _FEWEST:
        return None
    others = 0
    for item in items:
        others += _plain(item.candidate) not in map(_plain, item.references)
        if others > _OTHERS * len(items):
            return None  # as nearly always, after a tenth of the items
    candidates = counted(len(items), "candidate")
    return f"{source}: {len(items) - others:,} of {candidates} equal one of their own references; is it the right file?"


def _plain(text: str) -> str:
    return " ".join(text.split())


_FEWEST_WORDS: Final = 3
_FEWEST_KNOWN: Final = 0.5
_SHARE: Final = 0.1  # Of the candidates, from which on a warning is given: some misspellings are in every set.
_SHORT: Final = 4
_SAMPLE: Final = 200

_ENGLISH: Final = frozenset(
    """
    a an and another are as at be been being but by can could each for from had has have he her his how if in into is it
    its not of off on one or other over she some someone something than that the their them then there these they this
    those three to too two under up very was we were what when where which while who with without you your i all and any
    no bag bar bat bed bee big box boy bus bun cap car cat cow cup cut day dog dry ear eat egg eye fan far few fly fox
    fun get gym hat hay hen hot ice jet job kid lap leg lot low lie man mat men mom mud new old out own pan pen pet pie
    pig pot ran red run sad sea see set sit ski sky six sun tan tea ten tie toe top toy tub van wet yes zoo air arm art
    bow bay bin dad gas jar log map net nut oil oar owl paw pea rod row rug saw tap tv wig wok
    """.split()  # noqa: SIM905 (a list of words)
)
_OTHER: Final = frozenset(
    """
    der das ein eine einen einem einer und mit auf dem den im ist sind ihre seinem neben vor zwei von het een van met op
    zijn naar en aan bij twee de un une des les du dans avec sur est sont qui deux au aux et leur pres el los las una
    unos unas con por para del su sus al dos y la esta junto il lo gli della che di da dei nel nella sul sulla due alla
    um uma os na nas nos com em ao ate dois duas sobre och ett som av till det tva og til ve bir bu ile icin w z do sie
    jest oraz yang dan dengan sedang sebuah seorang
    """.split()  # noqa: SIM905 (a list of words)
)
# With the words that COCO's captions use most hardly a caption needs the lexicon, which takes 0.1 s and 30 MB to load.
_COMMON: Final = _ENGLISH | frozenset(
    """
    sitting people standing next white woman street table holding large group person field tennis small front near
    down room black train riding water young playing baseball plate bathroom walking kitchen sign side grass blue
    food building green looking ball beach pizza clock parked couple toilet skateboard snow city wearing game
    picture flying bench girl laptop road player eating horse wooden computer window sits through around area sink
    brown several giraffe desk motorcycle phone yellow laying many mirror board umbrella bear frisbee living behind
    wall open court close truck trees filled outside park covered little together sandwich view tree bird giraffes
    inside chair child background elephant skis cake floor back fire kite tower
    """.split()  # noqa: SIM905 (a list of words)
)
_WORD: Final = re.compile(r"[^\W\d_]+")


def is_english(text: str) -> bool:
    """Say whether a text may be English; one of fewer than three words may."""
    return _seems_english(text, _is_known)


def _seems_english(text: str, is_known: Callable[[str], bool]) -> bool:
    words = _WORD.findall(text.lower())
    if not words:
        return True
    if len(words) < _FEWEST_WORDS:
        return text.isascii() or any(map(is_known, words))
    english = sum(word in _ENGLISH for word in words)
    if sum(word in _OTHER for word in words) > english:
        return False
    return 2 * english >= len(words) or sum(map(is_known, words)) >= _FEWEST_KNOWN * len(words)


@lru_cache(maxsize=10_000)
def _is_known(word: str) -> bool:
    return word in _COMMON or (len(word) >= _SHORT and bool(load_lexicon().synsets(word)))


@cache
def _own_words(language: str) -> frozenset[str]:
    """Return the function words of another language than English that its table has."""
    table = find_language(language)
    prepositions = {word for word, *_ in table.prepositions}
    return frozenset().union(table.articles, table.of, table.agents, table.copulas, table.contractions, prepositions)


def _other_language_note(source: str, items: Sequence[Item], language: str) -> str | None:
    """Say that a tenth of the candidates, or more, have more function words of English than of their language."""
    own = _own_words(language)
    texts = (_WORD.findall(item.candidate.lower()) for item in items)
    others = sum(sum(word in _ENGLISH - own for word in words) > sum(word in own for word in words) for words in texts)
    if others < _SHARE * len(items) or not others:
        return None
    candidates = counted(len(items), "candidate")
    seem = "seems" if others == 1 else "seem"
    return f"{source}: {others:,} of {candidates} {seem} to be English, not {find_language(language).name}"


def language_note(
    source: str, items: Sequence[Item], *, is_graph: Callable[[str], bool] | None = None, language: str = "en"
) -> str | None:
    """Say that a tenth of the candidates, or more, are not in the language, if so; graphs are left out."""
    if language != "en":
        return _other_language_note(source, items, language)
    # All are looked at only where some of 200 evenly spread ones are not.
    captions = [item.candidate for item in items]
    few = captions[:: max(1, len(items) // _SAMPLE)]
    if all(_seems_english(caption, _COMMON.__contains__) for caption in few):
        return None
    doubtful = [caption for caption in captions if not _seems_english(caption, _COMMON.__contains__)]
    if is_graph is not None:
        doubtful = [caption for caption in doubtful if not is_graph(caption)]
    if len(doubtful) < _SHARE * len(items) or all(map(is_english, few)):
        return None
    others = sum(not is_english(caption) for caption in doubtful)
    if others < _SHARE * len(items):
        return None
    candidates = counted(len(items), "candidate")
    does = "does" if others == 1 else "do"
    return f"{source}: {others:,} of {candidates} {does} not seem to be English; all metrics here are made for English"


_MISSING: Final = frozenset({"nan", "none", "null", "n/a", "<na>"})  # What programs write for a missing caption.


def notes_on(
    source: str, items: Sequence[Item], *, is_graph: Callable[[str], bool] | None = None, language: str | None = None
) -> Iterator[str]:
    """Yield warnings about valid items, such as empty candidates or copied references."""
    empty = empty_candidates(items)
    if empty:
        yield f"{source}: {counted(empty, 'empty candidate')} scored as zero"
    yield from (f"{source}: {note}" for note in marks_notes(len(items), marks_of(items)))
    if missing := sum(item.candidate.strip().lower() in _MISSING for item in items):
        yield f"{source}: {counted(missing, 'candidate')} read as text such as nan or None: are captions missing?"
    in_language = language_note(source, items, is_graph=is_graph, language=language or "en")
    yield from filter(None, (copies_note(source, items), in_language))
    if is_graph is None:
        yield from phrase_notes(source, items)
        yield from shape_notes(source, items)


_LONG: Final = 3  # Candidates so many times as long as references are another kind of text.
_LONG_WORDS: Final = 20


def shape_notes(source: str, items: Sequence[Item]) -> Iterator[str]:
    """Warn, from five items on, of long candidates and of one-word or repeated references."""
    if len(items) < _FEWEST:
        return
    references = [text for item in items for text in item.references]
    long = sum(len(item.candidate.split()) for item in items) / len(items)
    short = sum(len(text.split()) for text in references) / len(references)
    if long >= _LONG_WORDS and long >= _LONG * short:
        yield (
            f"{source}: candidates have {long:.0f} words on average, references {short:.0f}: BLEU, ROUGE-L and CIDEr "
            "mostly measure that; for descriptions see --metrics detail, --graph-style scene and SPICE's precision"
        )
    if (single := sum(len(text.split()) == 1 for text in references)) >= _SHARE * len(references):
        of_all = counted(len(references), "reference")
        yield f"{source}: {single:,} of {of_all} are one word: SPICE finds neither attributes nor relations in them"
    if (twice := sum(len(set(item.references)) < len(item.references) for item in items)) >= _SHARE * len(items):
        of_all = counted(len(items), "item")
        yield f"{source}: {twice:,} of {of_all} have a reference twice, which counts twice in CIDEr; is that meant?"
