"""CoNLL-U lines in any scheme of labels, as lines in Universal Dependencies v1, which the rules read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_parser.fronts.schemes import Scheme, scheme_of, to_basic, ud1_label, ud1_tag
from spicegraph_parser.fronts.tree import Columns
from spicegraph_parser.languages import ENGLISH, Language

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from spicegraph_parser.spice.parse import Arc

__all__ = ["Scheme", "is_ud2", "ud1_label", "ud1_lines", "ud1_tag"]

_ID, _FORM, _LEMMA, _UPOS, _XPOS, _FEATS, _HEAD, _LABEL, _ENHANCED = range(9)


def is_ud2(rows: Iterable[list[str]]) -> bool:
    """Say whether a sentence's CoNLL-U cells have labels or arcs of UD v2 only."""
    words = list(rows)
    labels = {cells[_ID]: cells[_LABEL] for cells in words}
    for cells in words:
        if not cells[_ID].isdigit() or ud1_label(cells[_LABEL]) != cells[_LABEL]:
            return True
        if cells[_LABEL] == "cc" and labels.get(cells[_HEAD]) == "conj" and int(cells[_ID]) < int(cells[_HEAD]):
            return True
    return False


def ud1_lines(lines: Iterable[str], *, scheme: Scheme = Scheme.AUTO, language: Language = ENGLISH) -> Iterator[str]:
    r"""Yield CoNLL-U lines in v1, for :func:`spicegraph_parser.fronts.conllu.read_conllu`; numbers of lines stay.

    Of v2 sentences, multi-word tokens and empty nodes become comments, and the basic tree counts where it is
    filled. Sentences in v1, and lines that are not CoNLL-U, come back as they are.

    Args:
        lines: the file's lines.
        scheme: what the file is in; by default every sentence shows it itself.
        language: what it is written in; sentences of other languages than English are in v2 unless told.

    Raises:
        DataError: a sentence's labels are of no scheme that is known.

    Example:
        >>> she = "1\tshe\tshe\tPRON\t_\t_\t2\tnsubj\t_\t_"
        >>> sees = "2\tsees\tsee\tVERB\t_\t_\t0\troot\t_\t_"
        >>> it = "3\tit\tit\tPRON\t_\t_\t2\tobj\t_\t_"
        >>> [line.split("\t")[7] for line in ud1_lines([she, sees, it])]
        ['nsubj', 'root', 'dobj']
    """
    block: list[str] = []
    for raw in lines:
        line = raw.rstrip("\r\n")
        if line.strip():
            block.append(line)
            continue
        yield from _sentence(block, scheme, language)
        block = []
        yield line
    yield from _sentence(block, scheme, language)


def _scheme_of(words: list[list[str]], language: Language) -> Scheme:
    """Return the scheme that a sentence's labels show."""
    labels = {cells[_LABEL] for cells in words} - {"_"}
    scheme = scheme_of(labels, source=f"the CoNLL-U sentence {' '.join(cells[_FORM] for cells in words)[:60]!r}")
    if scheme is Scheme.CLEARNLP:
        return scheme
    return Scheme.UD2 if language is not ENGLISH or is_ud2(words) else Scheme.UD1


def _sentence(lines: list[str], scheme: Scheme, language: Language) -> Iterator[str]:
    rows = [line.split("\t") for line in lines]
    words = [cells for cells in rows if not cells[0].startswith("#")]
    if any(len(cells) != 10 for cells in words):
        yield from lines
        return
    if scheme is Scheme.AUTO:
        scheme = _scheme_of(words, language)
    if scheme is Scheme.UD1:
        yield from lines
        return
    plain = [cells for cells in words if cells[_ID].isdigit()]
    changed = iter(_mapped(plain, scheme, language) if _is_tree(plain) else map(_relabelled, plain))
    for line, cells in zip(lines, rows, strict=True):
        if cells[0].startswith("#"):
            yield line
        else:
            yield "\t".join(next(changed)) if cells[_ID].isdigit() else f"# {line}"


def _is_tree(words: list[list[str]]) -> bool:
    """Say whether words, as they should be, are numbered and have a head each."""
    numbers = [str(number) for number in range(len(words) + 1)]
    return [cells[_ID] for cells in words] == numbers[1:] and {cells[_HEAD] for cells in words} <= {*numbers}


def _mapped(words: list[list[str]], scheme: Scheme, language: Language) -> Iterator[list[str]]:
    def column(index: int) -> list[str]:
        return [cells[index] for cells in words]

    lemmas = [cells[_LEMMA if cells[_LEMMA] != "_" else _FORM].lower() for cells in words]
    features, heads = column(_FEATS), list(map(int, column(_HEAD)))
    columns = Columns(column(_FORM), lemmas, column(_UPOS), column(_XPOS), features, heads, column(_LABEL))
    basic = to_basic(columns, scheme, language)
    above: list[list[Arc]] = [[] for _ in words]
    for arc in basic.arcs:
        above[arc[2] - 1].append(arc)
    for cells, lemma, tag, arcs in zip(words, basic.lemmas, basic.tags, above, strict=True):
        label, head, _ = arcs[0]
        deps = "_" if len(arcs) == 1 else "|".join(f"{governor}:{name}" for name, governor, _ in arcs)
        yield [cells[_ID], cells[_FORM], lemma, cells[_UPOS], tag, cells[_FEATS], str(head), label, deps, cells[-1]]


def _relabelled(cells: list[str]) -> list[str]:
    """Return a word with its own labels and tag changed, where its sentence is no tree: an enhanced graph, or wrong."""
    changed = cells.copy()
    changed[_XPOS] = ud1_tag(cells[_XPOS], cells[_UPOS], cells[_FEATS])
    changed[_LABEL] = ud1_label(cells[_LABEL])
    if cells[_HEAD] != "_":
        changed[_ENHANCED] = "_"
    elif cells[_ENHANCED] != "_":
        parts = (part.partition(":") for part in cells[_ENHANCED].split("|"))
        changed[_ENHANCED] = "|".join(f"{head}:{ud1_label(label)}" for head, _, label in parts if head.isdigit())
    return changed
