"""Trees of captions in other languages than English, as the rules expect them: one pass for each convention.

Universal Dependencies write the languages alike, but leave much to the reader: who acts in "un homme, tenant un sac",
that "du coton" has an article, and that "à côté de" is one preposition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from spicegraph_languages.mending import adjectives, forms, is_compound, main_verbs, phrases_of_verbs
from spicegraph_languages.tree import NAMING, NOMINAL, OBJECTS, OBLIQUE, SILENT, VERBAL, Sentence
from spicegraph_parser.fronts.tree import Columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from spicegraph_parser.languages import Language, Phrases
    from spicegraph_parser.spice.parse import Arc


def _hyphens(tree: Sentence) -> None:
    """``T - shirt``, which a tokenizer split -> one word, t-shirt."""
    for middle in range(tree.size - 1, 1, -1):
        parts = (middle - 1, middle, middle + 1)
        if tree.forms[middle] == "-" and tree.forms[middle - 1].isalpha() and tree.forms[middle + 1][0].isalpha():
            _unite(tree, parts, "".join([tree.forms[middle - 1], "-", tree.lemmas[middle + 1]]))


def _unite(tree: Sentence, parts: tuple[int, ...], lemma: str) -> None:
    """Let one word speak for several that stand side by side: the first whose head is none of them."""
    head = _topmost(tree, parts)
    if head:
        for part in parts:
            if part != head:
                tree.silence(part, head)
        tree.lemmas[head] = tree.language.lemmas.get(lemma, lemma)
        if tree.universal[head] not in NAMING:
            tree.universal[head] = "NOUN"


def _topmost(tree: Sentence, parts: tuple[int, ...]) -> int:
    """Return the word of several from whose head no way leads back to one of them, or 0."""
    return next((part for part in parts if not any(tree.is_below(tree.heads[part], word) for word in parts)), 0)


def _names(tree: Sentence) -> None:
    """``planche de surf`` -> one noun."""
    for parts, name in _found(tree, tree.language.names):
        _unite(tree, parts, " ".join(name).replace("' ", "'"))


def _found(tree: Sentence, phrases: Phrases) -> Iterator[tuple[tuple[int, ...], tuple[str, ...]]]:
    """Yield where phrases stand, the longest at a place, and which; a word matches by its form or its lemma."""
    by_first: dict[str, list[tuple[str, ...]]] = {}
    for phrase in sorted(phrases, key=lambda phrase: (-len(phrase), phrase)):
        by_first.setdefault(phrase[0], []).append(phrase)
    start = 1
    while start <= tree.size:
        candidates = by_first.get(tree.forms[start], []) + by_first.get(tree.lemmas[start], [])
        found = next((phrase for phrase in candidates if _stands(tree, start, phrase)), ())
        if found:
            yield tuple(range(start, start + len(found))), found
        start += len(found) or 1


def _stands(tree: Sentence, start: int, phrase: tuple[str, ...]) -> bool:
    end = start + len(phrase)
    words = zip(tree.forms[start:end], tree.lemmas[start:end], strict=True)
    return end <= tree.size + 1 and all(name in word for name, word in zip(phrase, words, strict=True))


def _hand_over(tree: Sentence, word: int, words: Sequence[int], to: int, *, copula: str = "cop") -> None:
    """Hang a phrase word's dependents outside of the phrase on another word."""
    for child in tree.children(word):
        if child not in words:
            label = tree.labels[child]
            tree.attach(child, to, copula if label == "cop" else label)


def _prepositions(tree: Sentence) -> None:
    """``à côté de la table`` -> table, with the preposition à_côté_de, hangs where the phrase hung."""
    for position in range(1, tree.size + 1):
        is_adposition = tree.universal[position] == "ADP" and tree.labels[position] == "mark"
        if is_adposition and tree.universal[tree.heads[position]] in NAMING:
            tree.labels[position] = "case"
    for words, phrase in _found(tree, tree.language.phrases):
        noun = _governed(tree, words[-1])
        top = _topmost(tree, (noun, *words)) if noun else 0
        if not top:
            continue
        upper, label = tree.heads[top], tree.labels[top]
        if upper and (top != noun or not tree.is_oblique(noun)):
            label = "nmod" if tree.universal[upper] in NOMINAL else "obl"
        tree.attach(noun, upper, label)
        for word, lemma in zip(words, phrase, strict=True):
            _hand_over(tree, word, words, noun)
            tree.universal[word], tree.features[word], tree.lemmas[word] = "ADP", "_", lemma
        tree.attach(words[0], noun, "case")
        for word in words[1:]:
            tree.attach(word, words[0], "fixed")


def _governed(tree: Sentence, last: int) -> int:
    """Return the noun of a preposition's last word: the one that it hangs on, or the next; or 0."""
    head = tree.heads[last]
    if tree.labels[last] == "case" and head > last:
        return head
    return next((p for p in range(last + 1, min(last + 6, tree.size) + 1) if tree.universal[p] in NAMING), 0)


def _articles(tree: Sentence) -> None:
    """``chargent du coton``, ``des hommes``: partitives tagged as prepositions become articles."""
    for position in range(1, tree.size + 1):
        noun, head = tree.heads[position], tree.heads[tree.heads[position]]
        if tree.labels[position] != "case" or tree.forms[position] not in tree.language.partitive or noun < position:
            continue
        label = tree.labels[noun]
        is_object = label in {"obj", "obl", "obl:arg", "nmod"} and head < position and _takes_object(tree, head)
        is_joined = label == "conj" and tree.lemmas[tree.case(head)] != tree.lemmas[position]
        if label in {"nsubj", "nsubj:pass", "obj"} or head == 0 or is_object or is_joined:
            tree.labels[position], tree.universal[position] = "det", "DET"
            if is_object:
                tree.labels[noun] = "obj"


def _takes_object(tree: Sentence, verb: int) -> bool:
    return (
        tree.universal[verb] == "VERB"
        and tree.lemmas[verb] not in tree.language.of_verbs
        and not tree.has(verb, "Tense=Past|VerbForm=Part")
        and not tree.children(verb, "obj", "aux:pass", "expl:pass", "expl:comp", "expl:pv")
    )


def _compounds(tree: Sentence) -> None:
    """``tente de pêche`` -> compound(tente, pêche), as "fishing tent" has; ``der Hut des Mannes`` has an owner."""
    for position in range(1, tree.size + 1):
        if is_compound(tree, position):
            tree.labels[position] = "compound"
            tree.labels[tree.case(position)] = "dep"
        elif tree.labels[position] == "nmod" and tree.has(position, "Case=Gen") and not tree.case(position):
            tree.labels[position] = "nmod:poss"
        elif (
            tree.labels[position] in {"nmod", "appos", "flat", "flat:name", "dep"}
            and tree.universal[position] == "NOUN"
            and tree.heads[position] == position - 1
            and tree.universal[position - 1] == "NOUN"
            and not tree.children(position, "case", "det")
        ):
            tree.labels[position] = "compound"


def _quantities(tree: Sentence) -> None:
    """``un groupe de personnes`` -> det:qmod(personnes, groupe): the counted noun takes the place of the quantity."""
    language = tree.language
    for noun in range(1, tree.size + 1):
        head, case = tree.heads[noun], tree.case(noun)
        if (
            tree.lemmas[head] not in language.quantities
            or not 0 < noun - head <= 5
            or not tree.has(noun, "Number=Plur")
            or tree.universal[noun] not in NAMING
            or (case and tree.lemmas[case] not in language.of)
            or (not case and language.of and language.code != "de")
        ):
            continue
        own = [
            child for child in tree.children(head) if child < head and tree.labels[child] in {"det", "nummod", "amod"}
        ]
        tree.promote(noun, "det:qmod", keep=own)
        if case:
            tree.attach(case, head, "fixed")


def _relatives(tree: Sentence) -> None:
    """``un chien qui court`` -> nsubj(court, chien); ``la balle que lance un homme`` -> dobj(lance, balle)."""
    for position in range(1, tree.size + 1):
        verb, label = tree.heads[position], tree.labels[position]
        if "Rel" not in tree.feature(position, "PronType") or not verb or not tree.heads[verb]:
            continue
        noun = tree.heads[verb]
        is_relative = noun < position and tree.universal[noun] in NOMINAL and tree.labels[verb].startswith("acl")
        if is_relative and label in {"nsubj", "nsubj:pass", "obj"}:
            tree.further.append(("dobj" if label == "obj" else "nsubj", verb, noun))
            tree.labels[position], tree.labels[verb] = SILENT, "acl:relcl"


def _progressives(tree: Sentence) -> None:
    """``est en train de parler`` -> the infinitive is the verb."""
    for words, _ in _found(tree, tree.language.progressives):
        verb = next(
            (p for p in range(words[-1] + 1, min(words[-1] + 4, tree.size) + 1) if tree.universal[p] == "VERB"), 0
        )
        top = _topmost(tree, (*words, verb)) if verb else 0
        if not top or top == verb:
            continue
        head = tree.heads[top]
        label = "acl" if tree.universal[head] in NAMING else tree.labels[top] if not head else "advcl"
        tree.attach(verb, head, label)
        for word in words:
            _hand_over(tree, word, words, verb, copula="aux")
        for word in words:
            tree.silence(word, verb)
        tree.features[verb] = "Tense=Pres|VerbForm=Part"


_CLAUSES: Final = frozenset({"acl", "advcl", "conj", "ccomp", "parataxis", "xcomp", "dep", "appos", "advmod"})


def _subjects(tree: Sentence) -> None:
    """The subject of a verb without one: its governor's, or the noun that a small parser hangs a main verb on."""
    for verb in range(1, tree.size + 1):
        head = tree.heads[verb]
        is_posture = tree.has(verb, "Tense=Pres") or tree.forms[verb] in tree.language.participles
        if tree.labels[verb] in {"acl", "acl:relcl", "amod"} and is_posture and _is_worn(tree, head):
            head = tree.heads[head]
            tree.attach(verb, head, tree.labels[verb])
        if not head or not _lacks_subject(tree, verb):
            continue
        if tree.universal[head] in NAMING:
            noun = _outermost(tree, head)
            tree.labels[verb] = "dep"
        else:
            noun = _subject_of(tree, head)
        if noun and noun != verb and (noun < verb or tree.universal[head] not in NAMING):
            tree.further.append(("nsubj", verb, noun))


def _lacks_subject(tree: Sentence, verb: int) -> bool:
    """Say whether a word is a verb, or a predicate, that has no subject and should have one."""
    label = tree.labels[verb]
    auxiliaries = tree.children(verb, "cop", "aux:pass", "aux:tense", "aux")
    if label.partition(":")[0] not in _CLAUSES or tree.subject(verb):
        return False
    if tree.universal[verb] not in VERBAL and not tree.children(verb, "cop", "aux:pass"):
        return False
    if label.startswith("acl"):  # a participle is its noun's, a relative clause has a pronoun
        return label == "acl" and (tree.has(verb, "VerbForm=Fin") or bool(auxiliaries))
    return label == "xcomp" or not tree.has(verb, "VerbForm=Inf")


def _subject_of(tree: Sentence, verb: int) -> int:
    """Return a verb's subject, else the noun that it hangs on; expletives give the object."""
    noun = tree.subject(verb) or (tree.heads[verb] if tree.labels[verb] == "acl" else 0)
    if tree.labels[noun].startswith("expl"):
        noun = next(iter(tree.children(verb, "obj")), 0)
    return noun


def _is_worn(tree: Sentence, noun: int) -> bool:
    """Say whether a noun only modifies another, which later phrases then describe: "en uniforme"."""
    is_plain = tree.case(noun) and not tree.children(noun, "det", "nummod", "nmod:poss")
    return bool(is_plain) and tree.labels[noun] == "nmod" and tree.universal[tree.heads[noun]] in NAMING


def _outermost(tree: Sentence, noun: int) -> int:
    """Return the noun that a phrase is about: of "un enfant déguisé en pirate" the child."""
    while True:
        upper, label = tree.heads[noun], tree.labels[noun]
        if tree.universal[upper] == "VERB" and tree.labels[upper].startswith("acl") and label in OBLIQUE | OBJECTS:
            noun = tree.heads[upper]
        elif tree.universal[upper] in NAMING and label in OBLIQUE | {"conj"}:
            noun = upper
        else:
            return noun


def _voices(tree: Sentence) -> None:
    """``est assis sur`` is active where nobody acts on anything; an adjective with a place is like a verb."""
    for position in range(1, tree.size + 1):
        for child in tree.children(position, "obj"):
            if tree.case(child) and tree.lemmas[tree.case(child)] != "a":  # not Spanish "a un hombre"
                tree.labels[child] = "obl"
        obliques = [child for child in tree.children(position) if tree.is_oblique(child)]
        agents = [child for child in obliques if tree.lemmas[tree.case(child)] in tree.language.agents]
        if agents and _is_passive(tree, position):
            _set_passive(tree, position)
        else:
            for child in tree.children(position, "aux:pass", "nsubj:pass"):
                tree.labels[child] = tree.labels[child].removesuffix(":pass")
        if obliques and tree.universal[position] in {"ADJ", "VERB", "ADV"}:
            for child in tree.children(position, "cop"):
                tree.labels[child] = "aux"


def _is_passive(tree: Sentence, verb: int) -> bool:
    """Say whether a verb's labels, or its participle beside "to be", are those of a passive."""
    if tree.children(verb, "aux:pass", "nsubj:pass"):
        return True
    auxiliaries = {tree.lemmas[child] for child in tree.children(verb, "aux", "cop")}
    return tree.has(verb, "VerbForm=Part") and not auxiliaries.isdisjoint(tree.language.copulas)


def _set_passive(tree: Sentence, verb: int) -> None:
    for child in tree.children(verb, "nsubj"):
        tree.labels[child] = "nsubj:pass"
    for child in tree.children(verb, "cop", "aux"):
        tree.labels[child] = "aux:pass"
    tree.further = [
        ("nsubjpass" if (label, head) == ("nsubj", verb) else label, head, word) for label, head, word in tree.further
    ]


def _participles(tree: Sentence) -> None:
    """``fleurs séchées`` -> amod(fleurs, séchées): a participle that acts on nothing is an attribute."""
    for position in range(1, tree.size + 1):
        if not tree.is_participle(position) or tree.labels[position] not in {"acl", "amod"}:
            continue
        acts = any(
            tree.labels[child] in OBJECTS or (tree.is_oblique(child) and tree.case(child))
            for child in tree.children(position)
        )
        tree.labels[position] = "acl" if acts else "amod"


def _pronouns(tree: Sentence) -> None:
    """Label possessives as relations and reflexives as expletives; tag indefinite pronouns as nouns."""
    for position in range(1, tree.size + 1):
        if tree.universal[position] not in {"PRON", "DET"}:
            continue
        label = tree.labels[position]
        if tree.has(position, "Poss=Yes") and label.partition(":")[0] in {"det", "nmod"}:
            tree.labels[position] = "nmod:poss"
        elif tree.has(position, "Reflex=Yes") or label.startswith("expl"):
            tree.labels[position], tree.universal[position] = "expl", "PART"
        elif tree.universal[position] == "PRON" and tree.features[position] == "Person=3":  # "y", which is a place
            tree.universal[position] = "PART"
        elif tree.has(position, "PronType=Ind") and tree.universal[position] == "PRON":
            tree.universal[position] = "NOUN"


PASSES: Final[Mapping[str, Callable[[Sentence], None]]] = {
    "words": forms,
    "hyphens": _hyphens,
    "names": _names,
    "prepositions": _prepositions,
    "adjectives": adjectives,
    "quantities": _quantities,
    "compounds": _compounds,
    "progressives": _progressives,
    "main verbs": main_verbs,
    "relatives": _relatives,
    "subjects": _subjects,
    "phrases of verbs": phrases_of_verbs,
    "articles": _articles,
    "voices": _voices,
    "participles": _participles,
    "pronouns": _pronouns,
}
"""Every pass in order."""


def reword(columns: Columns, language: Language) -> tuple[Columns, list[Arc]]:
    """Return a sentence in Universal Dependencies v2 after every pass, and arcs (of v1) beside those of its tree."""
    tree = Sentence(columns, language)
    for change in PASSES.values():
        change(tree)
    words = tree.lemmas[1:], tree.universal[1:], columns.tags, tree.features[1:], tree.heads[1:], tree.labels[1:]
    return Columns(columns.forms, *words), tree.further
