"""What a sentence denies and hedges: which words, and which of its modifiers say nothing else.

A trigger has a scope: what stands below it in the tree, and not what stands beside it. "A man without a shirt rides a
bike" denies the shirt; "neither of the dogs wears a collar" the wearing and the collar, not the dogs.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from spicegraph_parser.caption_pipeline.lemmas import plural_lemma, verb_lemma
from spicegraph_parser.spice.parse import word_set
from spicegraph_parser.spice.wordnet import load_wordnet

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from spicegraph_parser.spice.parse import Parse


_LACKS: Final = "with"


class Standing(StrEnum):
    """Standing of a scope's words: denied, hedged, or excepted (there, but left out)."""

    DENIED = "denied"
    HEDGED = "hedged"
    EXCEPTED = "excepted"


class Scope(NamedTuple):
    """Words that a trigger denies, hedges or excepts; positions count from 1.

    Attributes:
        trigger: the word that denies.
        words: what it covers: nouns with what is said of them, or the word of a predicate.
        standing: how these stand.
        modifier: the words of a modifier that says nothing else, the trigger among them; none in a clause.
        owner: the noun that lacks what is covered, or 0.
        name: how it would be related to it.
    """

    trigger: int
    words: tuple[int, ...]
    standing: Standing = Standing.DENIED
    modifier: range = range(0)
    owner: int = 0
    name: str = _LACKS


_SEEN: Final = word_set("visible present seen see shown show depicted depict pictured discernible included evident")
_DEFINITE: Final = word_set("the this that these those his her its their my your our")
_NO_DENIAL: Final = word_set("only just merely simply far unlike necessarily until doubt matter parking smoking")
_SUBJECTS: Final = frozenset({"nsubj", "nsubjpass"})
_OBJECTS: Final = frozenset({"dobj", "iobj"})
_BESIDE: Final = frozenset({"det", "amod", "compound", "nummod", "neg", "advmod", "nn", "num"})
_FOLLOWING: Final = word_set("a an the his her its their my to at in on for with from through down up over along into")


class _Tree:
    """The dependency tree of a sentence, by positions from 1."""

    def __init__(self, parse: Parse) -> None:
        size = len(parse.forms) + 1
        self.words = ("", *[form.lower() for form in parse.forms])
        self.lemmas = ("", *parse.lemmas)
        self.tags = ("", *parse.tags)
        self.head, self.label = [0] * size, [""] * size
        self.below: list[list[int]] = [[] for _ in range(size)]
        for label, head, dependent in parse.arcs:
            self.head[dependent], self.label[dependent] = head, label
            self.below[head].append(dependent)

    def behind(self, at: int) -> str:
        """Return the word behind one, or nothing."""
        return self.words[at + 1] if at + 1 < len(self.words) else ""

    def under(self, at: int, labels: Collection[str]) -> list[int]:
        """Return the words below one by edges of given labels."""
        return [word for word in self.below[at] if self.label[word] in labels]

    def words_under(self, at: int, labels: Collection[str]) -> set[str]:
        """Return the forms of the words below one by edges of given labels."""
        return {self.words[word] for word in self.under(at, labels)}

    def all_under(self, at: int) -> set[int]:
        """Return a word and all below it."""
        out, todo = {at}, [at]
        while todo:
            new = [word for word in self.below[todo.pop()] if word not in out]
            out.update(new)
            todo += new
        return out

    def is_noun(self, at: int) -> bool:
        """Say whether a word is a noun, or stands for one."""
        return self.tags[at].startswith(("NN", "PRP", "CD")) or self.words[at] in {"one", "ones"}

    def is_definite(self, at: int) -> bool:
        """Say whether a noun phrase names a thing that is there."""
        if self.tags[at].startswith("PRP"):
            return True
        before = self.under(at, ("det", "nmod:poss", "amod", "poss"))
        return any(self.words[word] in _DEFINITE or self.label[word].endswith("poss") for word in before)


def _things(tree: _Tree, noun: int, *, listed: bool = True) -> list[int]:
    """Return a noun with its modifiers, its "of" nouns and the nouns joined to it."""
    out = [noun, *tree.under(noun, _BESIDE)]
    for other in tree.under(noun, ("nmod", "nmod:of")):
        if "of" in tree.words_under(other, ("case",)) and not tree.is_definite(other):
            out += _things(tree, other)
    joints = tree.words_under(noun, ("cc",))
    for other in tree.under(noun, ("conj", "appos")) if listed else ():
        own = tree.words_under(other, ("det", "neg", "nummod"))
        if joints & {"or", "nor"} or (joints <= {"and"} and joints and not own):
            out += _things(tree, other)
    return out


def _predicate(tree: _Tree, at: int) -> list[int]:
    """Return the words of a predicate that is not so: the verb, and things that it would have; or a preposition."""
    cases = tree.under(at, ("case",))
    if cases and tree.under(at, ("cop", *_SUBJECTS)):  # "is not on the table"
        return cases
    out = [at]
    for thing in tree.under(at, _OBJECTS):
        if not tree.is_definite(thing) and tree.is_noun(thing):
            out += _things(tree, thing)
    if tree.words[at] == "longer":  # "is no longer on the sofa"
        out += _places(tree, at)
    if tree.under(at, _OBJECTS):  # "never takes his eyes off the ball"
        out += [word for word in _places(tree, at) if tree.words[word] in _TOWARDS]
    for verb in tree.under(at, ("xcomp", "prt")):
        out += _predicate(tree, verb) if tree.tags[verb] not in _FINITE else []
    if tree.words_under(at, ("cc",)) & {"or", "nor"}:
        for verb in tree.under(at, ("conj",)):
            out += _predicate(tree, verb)
    return out


def _subject(tree: _Tree, at: int) -> int:
    """Return the noun that a verb or modifier says something of, or 0."""
    for _ in tree.words:
        if not at or tree.is_noun(at):
            break
        subjects = tree.under(at, _SUBJECTS)
        if subjects and tree.tags[subjects[0]] not in {"WDT", "WP"}:
            return subjects[0]
        at = tree.head[at]
    return at


def _governor(tree: _Tree, at: int) -> int:
    """Return the noun or the predicate that a negation is of; 0: it denies nothing."""
    governor, behind = tree.head[at], tree.behind(at)
    if tree.lemmas[governor] in _CEASING and tree.under(governor, _VERBS):  # "never stops smiling"
        return 0
    if tree.words[governor] in _ADVERBS and not tree.under(governor, _SUBJECTS):
        governor, behind = tree.head[governor], ""
    if not governor or behind in _NO_DENIAL:
        return 0
    if tree.label[at + 1 : at + 2] == ["det"] and tree.head[at + 1] > at:  # "not a person is in the street"
        return tree.head[at + 1]
    return governor


def _negated(tree: _Tree, at: int) -> Iterator[Scope]:
    """Scope of "no", "not", "never": the noun or the predicate above it."""
    governor = _governor(tree, at)
    if not governor:
        return
    is_place = bool(tree.under(governor, ("case",)) and tree.under(governor, ("cop", *_SUBJECTS)))
    if tree.is_noun(governor) and (tree.words[at] == "no" or not is_place):
        articles = tree.words_under(governor, ("det",))
        if tree.words[at] != "no" or articles.isdisjoint(("a", "an", "the")):  # "a no parking sign"
            yield _lacking(tree, at, governor)
    elif tree.words[governor] in _SEEN or tree.under(governor, ("expl",)):  # "there is not a cloud", "is not visible"
        yield from _gone(tree, governor)
    else:
        yield _in_clause(tree, at, governor)


def _lacked(tree: _Tree, at: int) -> Iterator[Scope]:
    """Scope of "without", "instead of", "rather than": the noun that it stands before, or the verb."""
    governor = tree.head[at]
    if tree.behind(at) != _LINKS.get(tree.words[at], tree.behind(at)):
        return  # "instead, it ...", "rather large"
    if tree.label[at + 1 : at + 2] == ["mark"]:  # "rather than climbing, she rides"
        governor = tree.head[at + 1]
    if tree.label[at] == "cc":  # "a cap rather than a hat"
        governor = next((word for word in tree.under(governor, ("conj",)) if word > at), 0)
    if governor and tree.is_noun(governor):
        yield _lacking(tree, at, governor)
    elif governor:
        yield _in_clause(tree, at, governor)


def _excepted(tree: _Tree, at: int) -> Iterator[Scope]:
    """Scope of "except", "apart from": a thing that is there and left out, or "a spoon", which is not there."""
    noun = tree.head[at] if tree.label[at] == "case" else 0
    if not noun:
        noun = next((word for word in tree.below[tree.head[at]] if word > at and tree.label[word] in _JOINED), 0)
    if not noun or (tree.words[at] == "but" and tree.words[at - 1] not in _ALL):
        return
    is_there = tree.words[at - 1] not in _ALL or "the" in tree.words_under(noun, ("det",))
    yield _lacking(tree, at, noun, Standing.EXCEPTED if is_there else Standing.DENIED)


def _of_none(tree: _Tree, at: int) -> Iterator[Scope]:
    """Scope of "neither", "none", "nobody": of a subject the predicate, else the thing."""
    if tree.behind(at) in _ALMOST_NONE:  # "nothing but", "none other than"
        if tree.behind(at) == "but":
            yield Scope(at, (at,))
        return
    above = at if tree.label[at] in (*_SUBJECTS, *_OBJECTS, "nmod", "root") else tree.head[at]
    if tree.label[above] in _SUBJECTS:
        is_listed = "nor" in tree.words_under(above, ("cc",)) and not tree.is_definite(above)
        own = (at,) if above == at else _things(tree, above) if is_listed else ()
        yield Scope(at, (*own, *_predicate(tree, tree.head[above])))
    elif above and above != at:
        yield _lacking(tree, at, above)
    else:
        yield Scope(at, (at,))


def _hardly(tree: _Tree, at: int) -> Iterator[Scope]:
    """Scope of "hardly any snow": the noun behind "any"."""
    if tree.behind(at) == "any" and tree.is_noun(tree.head[at + 1]):
        yield _lacking(tree, at, tree.head[at + 1])


def _few(tree: _Tree, at: int) -> Iterator[Scope]:
    """Scope of "few of the seats are taken": "few" and its predicate, as hedged."""
    if tree.behind(at) == "of" and tree.label[at] in _SUBJECTS:
        yield Scope(at, (at, *_predicate(tree, tree.head[at])), Standing.HEDGED)


def _lacks(tree: _Tree, at: int) -> Iterator[Scope]:
    """Scope of "lacks", "missing": its object, or else its subject, or the noun behind it."""
    things = tree.under(at, _OBJECTS)
    for thing in things:
        yield Scope(at, tuple(_things(tree, thing)))
    if not things and tree.words[at] == "missing":
        if tree.label[at] == "amod":
            yield Scope(at, tuple(_things(tree, tree.head[at])))
        else:
            yield from _gone(tree, at)


def _free_of(tree: _Tree, at: int) -> Iterator[Scope]:
    """Scope of "free of", "devoid of", "the absence of": the noun behind."""
    if tree.behind(at) in {"of", "from"} and tree.is_noun(tree.head[at + 1]):
        yield Scope(at, tuple(_things(tree, tree.head[at + 1])))


def _gone(tree: _Tree, at: int) -> Iterator[Scope]:
    """Scope of "is absent", "is missing", "is not visible": the subject."""
    yield from (Scope(at, tuple(_things(tree, subject))) for subject in tree.under(at, _SUBJECTS))


def _failed(tree: _Tree, at: int) -> Iterator[Scope]:
    """Scope of "fails to", "unable to": the verb behind, and where its object would go; the object itself is there."""
    for verb in tree.under(at, _VERBS):
        if tree.tags[verb].startswith("VB"):
            places = _places(tree, verb) if tree.under(verb, _OBJECTS) else []
            yield Scope(at, (verb, *(word for word in places if tree.words[word] in _TOWARDS)))


def _prevented(tree: _Tree, at: int) -> Iterator[Scope]:
    """Scope of "prevents a man from entering": the verb behind."""
    yield from (Scope(at, (verb,)) for verb in tree.under(at, _VERBS) if "from" in tree.words_under(verb, ("mark",)))


def _nearly(tree: _Tree, at: int) -> Iterator[Scope]:
    """Scope of "nearly trips over a hurdle": the verb, and its prepositions."""
    verb = tree.head[at]
    if tree.tags[verb] in _FINITE or tree.tags[verb] == "VBG":
        yield Scope(at, (verb, *_places(tree, verb)), Standing.HEDGED)


def _places(tree: _Tree, at: int) -> list[int]:
    """Return the prepositions of the places of a verb."""
    return [word for place in tree.under(at, ("nmod",)) for word in tree.under(place, ("case",))]


def _yet(tree: _Tree, at: int) -> Iterator[Scope]:
    """Scope of "have yet to cross": the verb behind."""
    if tree.behind(at) == "to" and tree.tags[tree.head[at + 1]] == "VB":
        yield Scope(at, (tree.head[at + 1],))


def _apart(tree: _Tree, at: int) -> Iterator[Scope]:
    """Scope of "apart from", "aside from": the preposition alone, without its noun."""
    if tree.behind(at) == "from":
        yield Scope(at, (at, at + 1))


def _meant(tree: _Tree, at: int) -> Iterator[Scope]:
    """Scope of "about to", "trying to", "dives to": the verb behind is not seen yet; its object is there."""
    if tree.label[at] != "amod" or at > tree.head[at]:
        yield from (
            Scope(at, (verb,), Standing.HEDGED)
            for verb in tree.under(at, _VERBS)
            if "VB" in {tree.tags[word] for word in (verb, *tree.under(verb, ("auxpass",)))}  # "to cut", "to be cut"
            and "to" in [tree.words[word] for word in tree.below[verb]]
        )


def _in_clause(tree: _Tree, at: int, governor: int) -> Scope:
    """Return the scope of a predicate; a modifier behind its noun that has no things of its own says nothing else."""
    words = tuple(_predicate(tree, governor))
    owner = _subject(tree, tree.head[governor]) if tree.label[governor] in {"acl", "amod", "advcl"} else 0
    if 0 < owner < at:
        inside = tree.all_under(governor) | {at}
        if not any(tree.is_noun(word) and word not in words for word in inside):
            name = tree.lemmas[governor] if tree.tags[governor].startswith("VB") else "be"
            return Scope(at, words, Standing.DENIED, _with_commas(tree, inside), owner, name)
    thing = next((thing for thing in tree.under(governor, _OBJECTS) if thing in words), 0)
    owner, name = _done_by(tree, thing) if thing else (0, _LACKS)
    return Scope(at, words, owner=owner, name=name)


def _belongs(tree: _Tree, word: int) -> bool:
    """Return whether a dependent of an absent noun phrase is a part of it."""
    if tree.label[word] == "nmod":
        return any(tree.tags[own].startswith("PRP") for own in tree.all_under(word))
    return tree.label[word] in {"acl", "advmod"}


def _lacking(tree: _Tree, at: int, noun: int, standing: Standing = Standing.DENIED) -> Scope:
    """Return the scope of a noun phrase that is not there; as a modifier behind a noun or a verb, of nothing else."""
    last = _before_verb(tree, at, noun)
    words = tuple([word for word in _things(tree, noun) if word >= at] if last == noun else range(at + 1, last + 1))
    start = at
    while tree.words[start - 1] in _OF_MODIFIERS:
        start -= 1
    is_modifier = tree.label[noun] in {"nmod", "conj"} and tree.words[start] in _OF_MODIFIERS and start > 1
    if noun < at or not is_modifier:  # "some with backs and some without": nothing stands behind it
        owner, name = _done_by(tree, noun)
        return Scope(at, words, standing, owner=owner, name=name)
    inside = {*range(start, last + 1), *words}
    for word in tree.below[noun] if last == noun else ():
        if word > noun and _belongs(tree, word):
            inside |= tree.all_under(word)
    modifier = _with_commas(tree, range(start, max(inside) + 1))
    while tree.label[noun] == "conj":
        noun = tree.head[noun]
    owner = 0 if tree.words[at] in _IN_PLACE_OF else _subject(tree, tree.head[noun])
    return Scope(at, words, standing, modifier, owner)


def _done_by(tree: _Tree, noun: int) -> tuple[int, str]:
    """Return the subject of the verb whose object a noun is, and the verb: "he has no hat"; or 0."""
    verb = tree.head[noun]
    if tree.label[noun] not in _OBJECTS:
        return 0, _LACKS
    return _subject(tree, verb), tree.lemmas[verb]


def _before_verb(tree: _Tree, at: int, noun: int) -> int:
    """Return the noun that a denial ends with: of "without makeup brushes her hair" the one before the verb."""
    names = [word for word in range(at + 1, noun) if tree.label[word] in _NAMES and _is_noun(tree.words[word])]
    return next((before for before in names if _is_done(tree, at, before + 1, noun)), noun)


def _is_done(tree: _Tree, at: int, verb: int, noun: int) -> bool:
    """Say whether a word of a name is a verb: "ski" of "without gloves ski jumps", "rides" of "a helmet rides"."""
    if verb == noun and _is_verb(f"{tree.words[noun]} {verb_lemma(tree.behind(noun))}"):
        return True
    if not tree.words[verb].endswith("s") or not _is_verb(verb_lemma(tree.words[verb])):
        return False
    is_single = not {"a", "an"}.isdisjoint(tree.words[at + 1 : verb])  # "without a helmet rides"
    is_followed = verb < noun or tree.behind(noun) in _FOLLOWING
    return is_single or (is_followed and _FINITE.isdisjoint(tree.tags))


def _is_noun(word: str) -> bool:
    return bool(load_wordnet().senses(plural_lemma(word), "n") or load_wordnet().senses(word, "n"))


def _is_verb(name: str) -> bool:
    return bool(load_wordnet().senses(name, "v"))


def _with_commas(tree: _Tree, inside: Collection[int]) -> range:
    """Return the words of a modifier with the commas around it."""
    first, last = min(inside), max(inside)
    if tree.words[first - 1] == ",":
        first -= 1
        last += tree.behind(last) == ","
    return range(first, last + 1)


_ADVERBS: Final = word_set("longer yet")
_CEASING: Final = word_set("stop cease quit fail")
_ALMOST_NONE: Final = word_set("like but other")
_TOWARDS: Final = word_set("off into onto from to toward towards over through across out with")
_VERBS: Final = ("xcomp", "ccomp", "acl", "advcl", "dep")
_JOINED: Final = ("conj", "nmod", "dobj", "dep", "appos")
_FINITE: Final = frozenset({"VBZ", "VBP", "VBD", "MD"})
_NAMES: Final = ("compound", "amod")
_LINKS: Final = {"instead": "of", "rather": "than"}
_IN_PLACE_OF: Final = word_set("instead rather except besides but")
_ALL: Final = word_set("everything everyone everybody all anything every")
_OF_MODIFIERS: Final = word_set("with without minus sans except but and instead rather")

TRIGGERS: Final[Mapping[str, Callable[[_Tree, int], Iterable[Scope]]]] = {
    word: scope
    for words, scope in (
        ("no not n't never", _negated),
        ("without minus sans instead rather", _lacked),
        ("except besides but", _excepted),
        ("neither none nobody nothing noone", _of_none),
        ("hardly scarcely barely", _hardly),
        ("few", _few),
        ("lacks lacked lacking missing", _lacks),
        ("free devoid bereft void empty bare absence lack", _free_of),
        ("absent invisible", _gone),
        (
            "fails failed failing fail refuses refused refusing refuse unable declines declined declining forgets "
            "forgot forgetting neglects neglected neglecting avoids avoided avoiding avoid",
            _failed,
        ),
        ("prevents prevented preventing prevent", _prevented),
        ("nearly almost", _nearly),
        ("yet", _yet),
        ("apart aside", _apart),
        (
            "about trying tries try tried attempting attempts attempt attempted preparing prepares prepared ready "
            "wants want wanting waiting waits intends intending hoping hopes planning plans "
            "pretends pretending pretend pretended dives dive diving lunges lunge lunging leaps leap leaping",
            _meant,
        ),
    )
    for word in words.split()
}
"""Of each word that denies, hedges or excepts, what is in its scope."""


def scopes(parse: Parse) -> list[Scope]:
    """Return the scopes of the triggers in a sentence."""
    if TRIGGERS.keys().isdisjoint(words := [form.lower() for form in parse.forms]):
        return []
    tree = _Tree(parse)
    found = [at for at, word in enumerate(words, 1) if word in TRIGGERS and not _is_in_title(parse.forms, at - 1)]
    return [scope for at in found for scope in TRIGGERS[words[at - 1]](tree, at)]


def _is_in_title(forms: Sequence[str], at: int) -> bool:
    """Say whether a trigger is one of the capitals of a title in other text: "a Do Not Enter sign"."""
    capitals = [form[0].isupper() for form in forms]
    return 0 < at < len(forms) - 1 and all(capitals[at - 1 : at + 2]) and sum(capitals) * 2 < len(forms)


# Hedges are told by words and tags alone, and cover the words up to the end of their clause: "suggesting a busy day".
_LIKELY: Final = word_set(
    """possibly perhaps maybe probably likely presumably apparently potentially supposedly seemingly conceivably evoking
    evoke evokes reminiscent unclear uncertain unknown imagine imagining presume assume assumed suggest suggests
    suggesting suggested imply implies implying implied indicating indicates"""
)
_LOOKS: Final = word_set("look looks looking")
_SEEMS: Final = _LOOKS | word_set("appear appears appeared appearing seem seems seemed seeming")
_MODALS: Final = word_set("might/MD may/MD could/MD would/MD")
_AS_IF: Final = word_set("if though")
_CLAUSE_ENDS: Final = word_set(
    ", . ; : ! ? -- ( ) but while although though except whereas however yet because which who where"
)
HEDGES: Final[Sequence[tuple[tuple[frozenset[str], ...], int]]] = (
    ((_LIKELY,), 1),
    ((word_set("hint hints hinted hinting"), word_set("at that")), 1),
    ((word_set("as"), _AS_IF), 2),
    ((_SEEMS, word_set("to like")), 2),
    ((_SEEMS, word_set("as"), _AS_IF), 3),
    ((_SEEMS - _LOOKS, word_set("JJ VBN RB")), 1),  # "appears old", and not "looks old"
    ((_MODALS, word_set("be"), word_set("seen")), 0),  # "can be seen" hedges nothing
    ((_MODALS,), 1),
)
"""What words in a row, or their tags, are where they hedge; the first that fits counts: how many words it takes."""
_IN_HEDGES: Final = frozenset(word.partition("/")[0] for cue, _ in HEDGES for word in cue[0])


def hedged(words: Sequence[str], tags: Sequence[str]) -> Iterator[int]:
    """Yield the positions, from 0, of the words of a sentence, in lower case, that are hedged."""
    if not _IN_HEDGES.isdisjoint(words):
        forms = [{word, tag, f"{word}/{tag}"} for word, tag in zip(words, tags, strict=True)]
        for at in range(len(words)):
            size = next((size for cue, size in HEDGES if _fits(cue, forms[at : at + len(cue)])), 0)
            yield from _clause(words, tags, at + size) if size else ()


def _fits(cue: Sequence[frozenset[str]], forms: Sequence[set[str]]) -> bool:
    return len(cue) == len(forms) and not any(map(frozenset.isdisjoint, cue, forms))


def _clause(words: Sequence[str], tags: Sequence[str], start: int) -> Iterator[int]:
    """Yield positions to the clause's end, or to the verb or preposition behind its noun."""
    has_noun = False
    for at in range(start, len(words)):
        is_said = has_noun and words[at] != "of" and tags[at] in _FINITE | {"IN", "TO"}
        if is_said or words[at] in _CLAUSE_ENDS:
            return
        has_noun = has_noun or tags[at].startswith("NN")
        yield at
