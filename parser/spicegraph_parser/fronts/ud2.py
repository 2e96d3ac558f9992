"""From Universal Dependencies v2, which today's parsers give, to v1, which the rules read.

They differ in labels and in where a coordinating word hangs: on the conjunct behind it in v2, on the first in v1. PTB
tags, which the rules need, are made from UPOS and FEATS where a file lacks them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from spicegraph_parser.spice.parse import word_pairs, word_set

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_ID, _LEMMA, _UPOS, _XPOS, _FEATS, _HEAD, _LABEL, _ENHANCED = 0, 2, 3, 4, 5, 6, 7, 8


class Scheme(StrEnum):
    """The dependency scheme of a CoNLL-U file; ``auto`` decides for every sentence."""

    AUTO = "auto"
    UD1 = "ud1"
    UD2 = "ud2"


# Labels of v2 whose meaning has another name in v1.
_LABELS: Mapping[str, str] = dict(
    word_pairs(
        """obj dobj, nsubj:pass nsubjpass, nsubj:outer nsubj, nsubj:xsubj nsubj, csubj:pass csubjpass,
        csubj:outer csubj, aux:pass auxpass, fixed mwe, flat compound, flat:name compound, flat:foreign foreign,
        nmod:desc compound, nmod:unmarked nmod:npmod, obl nmod, obl:agent nmod, obl:arg nmod, obl:npmod nmod:npmod,
        obl:tmod nmod:tmod, obl:unmarked nmod:npmod, advcl:relcl advcl, clf dep, orphan dep"""
    )
)
_PTB_TAGS = word_set(
    """CC CD DT EX FW IN JJ JJR JJS LS MD NN NNS NNP NNPS PDT POS PRP PRP$ RB RBR RBS RP SYM TO UH VB VBD VBG VBN
    VBP VBZ WDT WP WP$ WRB HYPH NFP ADD AFX GW XX -LRB- -RRB- , . : '' `` $ #"""
)
_TAGS: Mapping[str, str] = dict(
    word_pairs(
        """ADJ JJ, ADP IN, ADV RB, AUX VBZ, CCONJ CC, DET DT, INTJ UH, NOUN NN, NUM CD, PART RP, PRON PRP, PROPN NNP,
        PUNCT ., SCONJ IN, SYM SYM, VERB VB, X FW"""
    )
)
_VERB_FORMS = {"Ger": "VBG", "Inf": "VB", "Part": "VBN", "Fin": "VBZ"}


def ud1_label(label: str) -> str:
    """Return the v1 label of a v2 one, basic or enhanced; one that both have stays.

    Example:
        >>> [ud1_label(label) for label in ("obj", "obl:on", "nsubj:pass", "amod")]
        ['dobj', 'nmod:on', 'nsubjpass', 'amod']
    """
    if label in _LABELS:
        return _LABELS[label]
    family, colon, rest = label.partition(":")
    return f"nmod:{rest}" if family == "obl" and colon else label


def ud1_tag(tag: str, universal: str, features: str = "_") -> str:
    """Return a PTB tag: the given one if it is of that set, else what UPOS and FEATS say.

    Example:
        >>> ud1_tag("NN", "NOUN"), ud1_tag("_", "NOUN", "Number=Plur"), ud1_tag("_", "VERB", "VerbForm=Ger")
        ('NN', 'NNS', 'VBG')
    """
    if tag in _PTB_TAGS or universal not in _TAGS:
        return tag
    known = dict(part.partition("=")[::2] for part in features.split("|"))
    made = _TAGS[universal]
    if universal in ("VERB", "AUX"):
        made = _VERB_FORMS.get(known.get("VerbForm", ""), made)
        return "VBG" if made == "VBN" and known.get("Tense") == "Pres" else made
    if universal in ("PRON", "DET") and known.get("Poss") == "Yes":
        return "PRP$"
    return {"NN": "NNS", "NNP": "NNPS"}.get(made, made) if known.get("Number") == "Plur" else made


def is_ud2(rows: Iterable[list[str]]) -> bool:
    """Say whether a sentence's CoNLL-U cells have what only v2 has."""
    words = list(rows)
    labels = {cells[_ID]: cells[_LABEL] for cells in words}
    for cells in words:
        if not cells[_ID].isdigit() or cells[_LABEL] in _LABELS or cells[_LABEL].startswith("obl:"):
            return True
        if cells[_LABEL] == "cc" and labels.get(cells[_HEAD]) == "conj" and int(cells[_ID]) < int(cells[_HEAD]):
            return True
    return False


def ud1_lines(lines: Iterable[str], *, scheme: Scheme = Scheme.AUTO) -> Iterator[str]:
    r"""Yield CoNLL-U lines in v1, for :func:`spicegraph_parser.fronts.conllu.read_conllu`; numbers of lines stay.

    Of v2 sentences, multi-word tokens and empty nodes become comments, and the basic tree counts where it is
    filled. Sentences in v1, and lines that are not CoNLL-U, come back as they are.

    Args:
        lines: the file's lines.
        scheme: what the file is in; by default every sentence shows it itself.

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
        yield from _sentence(block, scheme)
        block = []
        yield line
    yield from _sentence(block, scheme)


def _sentence(lines: list[str], scheme: Scheme) -> Iterator[str]:
    rows = [line.split("\t") for line in lines]
    words = [cells for cells in rows if not cells[0].startswith("#")]
    is_sound = all(len(cells) == 10 for cells in words)
    if scheme is Scheme.UD1 or not is_sound or (scheme is Scheme.AUTO and not is_ud2(words)):
        yield from lines
        return
    by_id = {cells[_ID]: cells for cells in map(list.copy, words)}
    # case(sea, next), fixed(next, to) is in v1 advmod(sea, next), case(sea, to), which are joined later; longer fixed
    # prepositions keep their first word alone.
    for word in by_id.values():
        first = by_id.get(word[_HEAD])
        if word[_LABEL] != "fixed" or first is None or first[_LABEL] != "case":
            continue
        if sum(other[_HEAD] == first[_ID] and other[_LABEL] == "fixed" for other in by_id.values()) == 1:
            word[_HEAD], word[_LABEL] = first[_HEAD], "case"
            first[_LABEL] = "advmod"
    for line, cells in zip(lines, rows, strict=True):
        if cells[0].startswith("#"):
            yield line
        elif not cells[_ID].isdigit():
            yield f"# {line}"
        else:
            word = by_id[cells[_ID]]
            changed, above = word.copy(), by_id.get(word[_HEAD])
            changed[_XPOS] = ud1_tag(word[_XPOS], word[_UPOS], word[_FEATS])
            if word[_LABEL] == "cc" and above is not None and above[_LABEL] == "conj":
                changed[_HEAD] = above[_HEAD]
            changed[_LABEL] = ud1_label(word[_LABEL])
            if word[_HEAD] != "_":
                changed[_ENHANCED] = "_"
            elif word[_ENHANCED] != "_":
                parts = (part.partition(":") for part in word[_ENHANCED].split("|"))
                changed[_ENHANCED] = "|".join(
                    f"{head}:{ud1_label(label)}" for head, _, label in parts if head.isdigit()
                )
            yield "\t".join(changed)
