"""The schemes of labels that parsers use, how they are told apart, and the way from each to what the rules read.

The rules read Universal Dependencies v1. Version 2, which today's parsers give, differs in labels and in where a
coordinating word hangs: on the conjunct behind it, and in v1 on the first. PTB tags, which the rules need, are made
from parts of speech and morphology where a parser gives others. ``to_basic`` serves spaCy's documents and CoNLL-U.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from spicegraph_parser.errors import DataError
from spicegraph_parser.fronts.clearnlp import reference_lemma, to_universal
from spicegraph_parser.languages import ENGLISH, Language, load_registered
from spicegraph_parser.spice.parse import word_pairs, word_set

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from spicegraph_parser.fronts.tree import Columns
    from spicegraph_parser.spice.parse import Arc


class Scheme(StrEnum):
    """A scheme of labels; ``auto`` decides for every sentence of a CoNLL-U file, and for every pipeline of spaCy."""

    AUTO = "auto"
    UD1 = "ud1"
    UD2 = "ud2"
    CLEARNLP = "clearnlp"


class Basic(NamedTuple):
    """A sentence as the rules read it, beside its forms: PTB tags, lemmas, and dependencies of version 1."""

    tags: Sequence[str]
    lemmas: Sequence[str]
    arcs: Sequence[Arc]


_FAMILIES = word_set(
    """ROOT acl acomp advcl advmod agent amod appos attr aux auxpass case cc ccomp clf compound conj cop csubj csubjpass
    dative dep det discourse dislocated dobj expl fixed flat foreign goeswith intj iobj list mark meta mwe name neg nmod
    npadvmod nsubj nsubjpass nummod obj obl oprd orphan parataxis pcomp pobj poss preconj predet prep prt punct quantmod
    relcl remnant reparandum root vocative xcomp"""
)
_OF_CLEARNLP = word_set("acomp agent attr dative npadvmod oprd pcomp pobj poss predet prep prt quantmod relcl")
_OF_V2 = word_set("obj obl fixed flat clf")


def scheme_of(labels: Collection[str], *, source: str, default: Scheme = Scheme.UD2) -> Scheme:
    """Return the scheme that labels are of; ``default``: where they are of several.

    Raises:
        DataError: most of them are of no scheme that is known; the message names them after their ``source``.

    Example:
        >>> scheme_of({"nsubj", "obj"}, source="x"), scheme_of({"nsubj", "pobj"}, source="x")
        (<Scheme.UD2: 'ud2'>, <Scheme.CLEARNLP: 'clearnlp'>)
    """
    families = {label.partition(":")[0] for label in labels} - {"", "dep", "punct", "ROOT", "root"}
    unknown = families - _FAMILIES
    if 2 * len(unknown) > len(families):
        raise DataError(
            f"{source} has labels of no scheme that is known: {', '.join(sorted(unknown))} "
            "(known are Universal Dependencies v1 and v2, and ClearNLP's)"
        )
    if families & _OF_CLEARNLP:
        return Scheme.CLEARNLP
    if families & _OF_V2 or {"nsubj:pass", "aux:pass"} & {*labels}:
        return Scheme.UD2
    return Scheme.UD1 if families & {"dobj", "nsubjpass", "auxpass", "mwe", "neg"} else default


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
    """Return a PTB tag: the given one, or else one derived from UPOS and FEATS.

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


_SUBTYPES = word_set("nmod:poss nmod:tmod nmod:npmod compound:prt det:qmod acl:relcl")


def _tree_label(label: str) -> str:
    """Return the v1 label of a tree's v2 one, without a subtype of its language: obl:mod names no preposition."""
    if label.startswith("obl:"):
        label = _LABELS.get(label, "nmod")
    label = ud1_label(label)
    return label if label in _SUBTYPES else label.partition(":")[0]


def to_basic(columns: Columns, scheme: Scheme, language: Language = ENGLISH) -> Basic:
    """Return a sentence in Universal Dependencies v1 with PTB tags, from any scheme but ``auto``."""
    if scheme is Scheme.CLEARNLP:
        tags = columns.tags if all(columns.tags) else _tags(columns, ENGLISH)
        lemmas = tuple(map(reference_lemma, columns.forms, tags, columns.lemmas))
        return Basic(tags, lemmas, tuple(to_universal(tags, lemmas, columns.heads, columns.labels)))
    if scheme is Scheme.UD1:
        return Basic(_tags(columns, language), columns.lemmas, _arcs(columns.heads, columns.labels))
    if language is not ENGLISH:
        reword: Callable[[Columns, Language], tuple[Columns, Sequence[Arc]]] = load_registered("wording")
        columns, further = reword(columns, language)
        return Basic(_tags(columns, language), columns.lemmas, (*_v1_arcs(columns, language), *further))
    return Basic(_tags(columns, language), columns.lemmas, _v1_arcs(columns, language))


def _arcs(heads: Sequence[int], labels: Sequence[str]) -> tuple[Arc, ...]:
    return tuple(zip(labels, heads, range(1, len(heads) + 1), strict=True))


def _tags(columns: Columns, language: Language) -> Sequence[str]:
    """Return PTB tags; of other languages' own tags some are spelt like one of PTB's."""
    tags = columns.tags if language is ENGLISH else ("_",) * len(columns.tags)
    return tuple(map(ud1_tag, tags, columns.universal, columns.features))


def _part_fixed(columns: Columns, heads: list[int], labels: list[str]) -> None:
    """Give the words of fixed prepositions the heads and labels that they have in v1."""
    # case(sea, next), fixed(next, to) is in v1 advmod(sea, next), case(sea, to), which are joined later; longer fixed
    # prepositions keep their first word alone.
    fixed = [head for label, head in zip(columns.labels, columns.heads, strict=True) if label == "fixed"]
    for position, (label, head) in enumerate(zip(columns.labels, columns.heads, strict=True)):
        if label == "fixed" and head and columns.labels[head - 1] == "case" and fixed.count(head) == 1:
            heads[position], labels[position] = columns.heads[head - 1], "case"
            labels[head - 1] = "advmod"


def _v1_arcs(columns: Columns, language: Language) -> Sequence[Arc]:
    heads, labels = list(columns.heads), list(columns.labels)
    if language is ENGLISH:
        _part_fixed(columns, heads, labels)
    for position, (label, head) in enumerate(zip(labels, heads, strict=True)):
        if label == "cc" and head and labels[head - 1] == "conj":
            heads[position] = columns.heads[head - 1]
        elif label in {"advmod", "det"} and columns.lemmas[position] in language.negations:
            labels[position] = "neg"
    relabel = ud1_label if language is ENGLISH else _tree_label
    return _arcs(heads, list(map(relabel, labels)))
