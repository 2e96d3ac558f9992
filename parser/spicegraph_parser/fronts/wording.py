"""Trees of captions in other languages than English, as the rules expect them: one pass for each convention.

Universal Dependencies write the languages alike, but leave much to the reader: who acts in "un homme, tenant un sac",
that "du coton" has an article, and that "à côté de" is one preposition. Some passes mend what small parsers get wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from spicegraph_parser.fronts.tree import Columns, Tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from spicegraph_parser.languages import Language, Phrases
    from spicegraph_parser.spice.parse import Arc

_NOMINAL: Final = frozenset({"NOUN", "PROPN", "PRON", "NUM", "SYM", "X"})
_NAMING: Final = frozenset({"NOUN", "PROPN"})
_VERBAL: Final = frozenset({"VERB", "AUX"})
_OBLIQUE: Final = frozenset({"obl", "obl:arg", "obl:mod", "obl:agent", "obl:tmod", "nmod", "dep", "iobj"})
_OBJECTS: Final = frozenset({"obj", "iobj"})
_SUBJECTS: Final = ("nsubj", "nsubj:pass", "csubj", "csubj:pass", "expl:subj")
_SILENT: Final = "punct"  # the label of a word that another word speaks for


class _Sentence(Tree):
    """A tree with the words of its positions; ``further`` are arcs beside those of the tree."""

    def __init__(self, columns: Columns, language: Language) -> None:
        super().__init__(columns.heads, columns.labels)
        self.size = len(columns.forms)
        self.forms = ["", *map(str.lower, columns.forms)]
        self.lemmas = ["", *map(str.lower, columns.lemmas)]
        self.universal = ["", *columns.universal]
        self.features = ["", *columns.features]
        self.language = language
        self.further: list[Arc] = []

    def has(self, position: int, feature: str) -> bool:
        return f"|{feature}|" in f"|{self.features[position]}|"

    def feature(self, position: int, name: str) -> str:
        _, found, value = f"|{self.features[position]}".partition(f"|{name}=")
        return value.partition("|")[0] if found else ""

    def silence(self, position: int, head: int) -> None:
        """Let another word speak for one, with all that hangs on it."""
        for child in self.children(position):
            if child != head:
                self.attach(child, head, self.labels[child])
        self.attach(position, head, _SILENT)
        self.universal[position], self.features[position] = "PUNCT", "_"

    def case(self, position: int) -> int:
        """Return a noun's first preposition, or 0."""
        cases = self.children(position, "case")
        return cases[0] if cases else 0

    def is_oblique(self, position: int) -> bool:
        return self.labels[position] in _OBLIQUE and self.universal[position] in _NOMINAL

    def subject(self, position: int) -> int:
        """Return a predicate's subject, or 0."""
        own = self.children(position, *_SUBJECTS)
        own += [word for label, head, word in self.further if (label, head) == ("nsubj", position)]
        return own[0] if own else 0

    def is_adjective(self, position: int) -> bool:
        """Say whether a word is surely an adjective: one of the table's, or a predicate."""
        return self.forms[position] in self.language.adjectives or bool(self.children(position, "cop"))

    def is_participle(self, position: int) -> bool:
        return self.universal[position] == "VERB" and not self.has(position, "VerbForm=Fin")


def _words(tree: _Sentence) -> None:
    """Lemmas of contractions, and classes and lemmas of words that small models often have wrong."""
    language = tree.language
    for position in range(1, tree.size + 1):
        form, found = tree.forms[position], tree.universal[position]
        if form in language.contractions and found not in {"DET", "NOUN", "VERB"}:
            tree.lemmas[position] = language.contractions[form]
        for universal, forms, features, fits in _CLASSES:
            known = forms(language)
            if form in known and (found == universal or fits(tree, position)):
                tree.lemmas[position] = known[form]
                if found != universal:
                    tree.universal[position], tree.features[position] = universal, features
                    _rehang(tree, position)
                break
        if _is_open(tree, position):
            tree.universal[position], tree.features[position] = "NOUN", "_"
            tree.lemmas[position] = form
            _rehang(tree, position)
        tree.lemmas[position] = language.lemmas.get(form, tree.lemmas[position])
        if language.infinitives:
            _conjugate(tree, position)


def _is_bare(tree: _Sentence, position: int) -> bool:
    return tree.universal[position - 1] not in {"DET", "NUM"} and not tree.children(position, "det", "case", "nummod")


def _is_like_adjective(tree: _Sentence, position: int) -> bool:
    before, behind = tree.universal[position - 1], [*tree.universal, ""][position + 1]
    is_in_front = behind == "NOUN" or [*tree.forms, ""][position + 1] in tree.language.nouns
    return before in {"NOUN", "PROPN", "ADJ"} or (is_in_front and not tree.children(position, "cop"))


def _is_like_verb(tree: _Sentence, position: int) -> bool:
    before, behind = tree.universal[position - 1], [*tree.universal, "PUNCT"][position + 1]
    return (
        before in {"NOUN", "PROPN", "ADJ", "PRON", "ADV"}
        and behind in {"DET", "ADP", "ADV", "SCONJ", "CCONJ", "PUNCT", "PRON", "NUM"}
        and _is_bare(tree, position)
    )


def _is_like_noun(tree: _Sentence, position: int) -> bool:
    return tree.universal[position - 1] in {"DET", "NUM", "ADJ"}


def _is_open(tree: _Sentence, position: int) -> bool:
    """Say whether a word is of an open class that a model takes for an article, or a noun that it takes for a verb."""
    found, before = tree.universal[position], tree.universal[position - 1]
    if found == "DET":
        return tree.has(position, "PronType=Art") and tree.lemmas[position] not in tree.language.articles
    if found == "VERB":
        return before == "DET" and not tree.has(position, "VerbForm=Part")
    behind = tree.universal[position + 1 : position + 3]
    return (
        found == "ADJ"
        and before == "DET"
        and not {"NOUN", "PROPN", "CCONJ"} & {*behind}
        and not tree.is_adjective(position)
    )


_CLASSES: Final[
    tuple[tuple[str, Callable[[Language], Mapping[str, str]], str, Callable[[_Sentence, int], bool]], ...]
] = (
    ("NOUN", lambda language: language.nouns, "_", _is_like_noun),
    ("ADJ", lambda language: language.adjectives, "_", _is_like_adjective),
    ("VERB", lambda language: language.participles, "Tense=Past|VerbForm=Part", _is_bare),
    ("VERB", lambda language: language.verbs, "VerbForm=Fin", _is_like_verb),
)


def _conjugate(tree: _Sentence, position: int) -> None:
    """Verbs by their endings: class and lemma of "roulent", which a model takes for an adverb."""
    form, language = tree.forms[position], tree.language
    ending = next((ending for ending in language.verb_endings if form.endswith(ending)), "")
    if not ending or form in language.participles or form in language.verbs:
        return
    if tree.universal[position] in {"ADV", "ADJ", "NOUN", "PROPN"} and _is_bare(tree, position):
        behind = tree.universal[position + 1 : position + 2]
        is_named = tree.universal[position - 1] in {"NOUN", "PROPN", "ADJ"}
        if ending == "ent" and not form.endswith("ment") and tree.has(position - 1, "Number=Plur"):
            features = "VerbForm=Fin"
        elif ending == "ant" and behind in (["DET"], ["ADP"]):
            features = "Tense=Pres|VerbForm=Part"
        elif ending == "e" and behind == ["DET"] and is_named:
            features = "VerbForm=Fin"
        else:
            return
        tree.universal[position], tree.features[position], tree.lemmas[position] = "VERB", features, form
        _rehang(tree, position)
    if tree.universal[position] == "VERB" and not tree.lemmas[position].endswith(language.infinitives):
        tree.lemmas[position] = form.removesuffix(ending) + language.verb_endings[ending]


def _rehang(tree: _Sentence, position: int) -> None:
    """Hang a word whose class was wrong as one of its class does."""
    head, universal = tree.heads[position], tree.universal[position]
    if universal == "VERB":
        if head and head < position and tree.universal[head] in _NAMING:
            tree.labels[position] = "acl"
        elif tree.labels[position] in {"amod", "advmod", "nmod", "case", "obl"}:
            tree.labels[position] = "dep"
        nouns = [
            p for p in tree.children(position) if p < position and tree.universal[p] in _NAMING and not tree.case(p)
        ]
        if nouns and not tree.subject(position):
            tree.labels[nouns[0]] = "nsubj"
        return
    if universal == "NOUN":
        verbs = [p for p in tree.children(position) if p < position and tree.universal[p] == "VERB"]
        if head in (position - 1, position + 1) and tree.universal[head] == "ADJ":
            tree.promote(position, "amod")
        elif verbs:
            tree.promote(verbs[-1], "obj")
        elif tree.labels[position] == "det":
            tree.promote(position, "amod")
        return
    noun = _noun_before(tree, position)
    if not noun and tree.universal[position + 1 : position + 2] == ["NOUN"]:
        noun = position + 1
    below = tree.children(position)
    if noun and noun != head and _is_below(tree, noun, position):
        verbs = [p for p in below if tree.universal[p] in _VERBAL or tree.children(p, "cop", "aux:pass")]
        subjects = tree.children(position, *_SUBJECTS)
        tree.promote([*verbs, *subjects, *(p for p in below if _is_below(tree, noun, p))][0], "amod")
    if noun:
        tree.attach(position, noun, "amod")


def _noun_before(tree: _Sentence, position: int) -> int:
    """Return the noun in front of an adjective, with other adjectives between them at most, or 0."""
    at = position - 1
    while at and tree.universal[at] in {"ADJ", "ADV", "CCONJ"}:
        at -= 1
    return at if tree.universal[at] in _NAMING else 0


def _hyphens(tree: _Sentence) -> None:
    """``T - shirt``, which a tokenizer split -> one word, t-shirt."""
    for middle in range(tree.size - 1, 1, -1):
        parts = (middle - 1, middle, middle + 1)
        if tree.forms[middle] == "-" and tree.forms[middle - 1].isalpha() and tree.forms[middle + 1][0].isalpha():
            _unite(tree, parts, "".join([tree.forms[middle - 1], "-", tree.lemmas[middle + 1]]))


def _unite(tree: _Sentence, parts: tuple[int, ...], lemma: str) -> None:
    """Let one word speak for several that stand side by side: the first whose head is none of them."""
    head = next((part for part in parts if tree.heads[part] not in parts), 0)
    if head:
        for part in parts:
            if part != head:
                tree.silence(part, head)
        tree.lemmas[head] = lemma
        if tree.universal[head] not in _NAMING:
            tree.universal[head] = "NOUN"


def _names(tree: _Sentence) -> None:
    """``planche de surf`` -> one noun."""
    for parts, name in _found(tree, tree.language.names):
        _unite(tree, parts, " ".join(name).replace("' ", "'"))


def _found(tree: _Sentence, phrases: Phrases) -> Iterator[tuple[tuple[int, ...], tuple[str, ...]]]:
    """Yield where phrases stand, the longest at a place, and which; a word matches by its form or its lemma."""
    by_first: dict[str, list[tuple[str, ...]]] = {}
    for phrase in sorted(phrases, key=len, reverse=True):
        by_first.setdefault(phrase[0], []).append(phrase)
    start = 1
    while start <= tree.size:
        candidates = by_first.get(tree.forms[start], []) + by_first.get(tree.lemmas[start], [])
        found = next((phrase for phrase in candidates if _stands(tree, start, phrase)), ())
        if found:
            yield tuple(range(start, start + len(found))), found
        start += len(found) or 1


def _stands(tree: _Sentence, start: int, phrase: tuple[str, ...]) -> bool:
    end = start + len(phrase)
    words = zip(tree.forms[start:end], tree.lemmas[start:end], strict=True)
    return end <= tree.size + 1 and all(name in word for name, word in zip(phrase, words, strict=True))


def _prepositions(tree: _Sentence) -> None:
    """``à côté de la table`` -> table, with the preposition à_côté_de, hangs where the phrase hung."""
    for position in range(1, tree.size + 1):
        if tree.labels[position] == "mark" and tree.universal[position] == "ADP":
            if tree.universal[tree.heads[position]] in _NAMING:
                tree.labels[position] = "case"
    for words, phrase_words in _found(tree, tree.language.phrases):
        last = words[-1]
        noun = tree.heads[last] if tree.labels[last] == "case" and tree.heads[last] > last else 0
        noun = noun or next(
            (p for p in range(last + 1, min(last + 6, tree.size) + 1) if tree.universal[p] in _NAMING), 0
        )
        phrase = {*words, noun}
        outer = [word for word in (noun, *words) if tree.heads[word] not in phrase]
        if not noun or not outer or noun in words:
            continue
        upper, label = tree.heads[outer[0]], tree.labels[outer[0]]
        if _is_below(tree, upper, noun):
            continue
        if upper and (outer[0] != noun or not tree.is_oblique(noun)):
            label = "nmod" if tree.universal[upper] in _NOMINAL else "obl"
        tree.attach(noun, upper, label)
        for word in words:
            for child in tree.children(word):
                if child not in phrase:
                    tree.attach(child, noun, tree.labels[child])
        tree.attach(words[0], noun, "case")
        for word in words:
            tree.universal[word], tree.features[word] = "ADP", "_"
            tree.lemmas[word] = phrase_words[word - words[0]]
            if word != words[0]:
                tree.attach(word, words[0], "fixed")


def _is_below(tree: _Sentence, position: int, ancestor: int) -> bool:
    seen = set()
    while position and position not in seen:
        if position == ancestor:
            return True
        seen.add(position)
        position = tree.heads[position]
    return False


def _articles(tree: _Sentence) -> None:
    """``chargent du coton``, ``des hommes``: what is written like a preposition is an article."""
    for position in range(1, tree.size + 1):
        noun, head = tree.heads[position], tree.heads[tree.heads[position]]
        if tree.labels[position] != "case" or tree.forms[position] not in tree.language.partitive or noun < position:
            continue
        label = tree.labels[noun]
        is_object = label in {"obj", "obl", "obl:arg"} and head < position and _takes_object(tree, head)
        is_joined = label == "conj" and tree.lemmas[tree.case(head)] != tree.lemmas[position]
        if label in {"nsubj", "nsubj:pass", "obj"} or head == 0 or is_object or is_joined:
            tree.labels[position], tree.universal[position] = "det", "DET"
            if is_object:
                tree.labels[noun] = "obj"


def _takes_object(tree: _Sentence, verb: int) -> bool:
    return (
        tree.universal[verb] == "VERB"
        and tree.lemmas[verb] not in tree.language.of_verbs
        and not tree.has(verb, "Tense=Past|VerbForm=Part")
        and not tree.children(verb, "obj", "aux:pass", "expl:pass", "expl:comp", "expl:pv")
    )


def _adjectives(tree: _Sentence) -> None:
    """An adjective's tag, where only its label says what it is; and its noun: the one in front of it that agrees."""
    for position in range(1, tree.size + 1):
        if tree.labels[position] != "amod":
            continue
        if tree.universal[position] in {"NOUN", "PROPN", "DET", "ADV"}:
            tree.universal[position] = "ADJ"
        near, head = position - 1, tree.heads[position]
        if (
            tree.universal[position] == "ADJ"
            and near > head
            and tree.universal[near] == "NOUN"
            and _is_below(tree, near, head)
        ):
            apart = any(
                {tree.feature(near, name), ""}.isdisjoint({tree.feature(position, name)})
                and tree.feature(position, name)
                for name in ("Gender", "Number")
            )
            if not apart and not _is_compound(tree, near):
                tree.attach(position, near, "amod")


def _is_compound(tree: _Sentence, noun: int) -> bool:
    """Say whether a noun says of which kind another one is: "de pêche" of "tente de pêche"."""
    case, head = tree.case(noun), tree.heads[noun]
    return (
        tree.labels[noun] in {"nmod", "obl:arg", "obl:mod"}
        and tree.universal[noun] in _NAMING
        and tree.universal[head] == "NOUN"
        and 0 < noun - head <= 3
        and bool(case)
        and tree.lemmas[case] in tree.language.of
        and tree.forms[case] not in {form for form in tree.language.contractions if "'" not in form and "’" not in form}
        and not tree.children(noun, "det", "nummod", "nmod:poss", "det:poss")
        and not tree.children(case)
        and not tree.has(noun, "Number=Plur")
    )


def _compounds(tree: _Sentence) -> None:
    """``tente de pêche`` -> compound(tente, pêche), as "fishing tent" has."""
    for position in range(1, tree.size + 1):
        if _is_compound(tree, position):
            tree.labels[position] = "compound"
            tree.labels[tree.case(position)] = "dep"
        elif (
            tree.labels[position] in {"nmod", "appos", "flat", "flat:name", "dep"}
            and tree.universal[position] == "NOUN"
            and tree.heads[position] == position - 1
            and tree.universal[position - 1] == "NOUN"
            and not tree.children(position, "case", "det")
        ):
            tree.labels[position] = "compound"


def _quantities(tree: _Sentence) -> None:
    """``un groupe de personnes`` -> det:qmod(personnes, groupe): the counted noun takes the place of the quantity."""
    language = tree.language
    for noun in range(1, tree.size + 1):
        head, case = tree.heads[noun], tree.case(noun)
        if (
            tree.lemmas[head] not in language.quantities
            or not 0 < noun - head <= 5
            or not tree.has(noun, "Number=Plur")
            or tree.universal[noun] not in _NAMING
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


def _phrases_of_verbs(tree: _Sentence) -> None:
    """``un homme dormant dans une chambre``: what stands right behind a verb is the verb's, not its subject's."""
    for noun in range(2, tree.size + 1):
        head, verb = tree.heads[noun], _verb_before(tree, noun)
        label = tree.labels[noun].partition(":")[0]
        if not verb or verb == head or tree.universal[noun] not in _NOMINAL or _is_below(tree, verb, noun):
            continue
        is_object = not tree.case(noun) and not tree.children(verb, "obj")
        if label in {"nmod", "appos", "obl", "dep"} and head in (tree.heads[verb], tree.subject(verb)):
            if tree.case(noun) or is_object:
                tree.attach(noun, verb, "obj" if is_object else "obl")
        elif label == "obj" and head > noun and is_object:
            tree.attach(noun, verb, "obj")


def _verb_before(tree: _Sentence, noun: int) -> int:
    """Return the verb right in front of a noun phrase, or the finite one between it and the noun that it hangs on."""
    first = min([noun, *[child for child in tree.children(noun) if child < noun]])
    verb, head = first - 1, tree.heads[noun]
    if tree.universal[verb] == "ADV" and tree.heads[verb] == verb - 1:
        verb -= 1
    if tree.universal[verb] == "VERB":
        return verb
    between = (p for p in range(noun - 1, head, -1) if tree.universal[p] == "VERB" and tree.subject(p) == head)
    return next(between, 0) if head and tree.case(noun) else 0


def _relatives(tree: _Sentence) -> None:
    """``un chien qui court`` -> nsubj(court, chien); ``la balle que lance un homme`` -> dobj(lance, balle)."""
    for position in range(1, tree.size + 1):
        verb, label = tree.heads[position], tree.labels[position]
        if not tree.has(position, "PronType=Rel") or not verb or not tree.heads[verb]:
            continue
        noun = tree.heads[verb]
        is_relative = noun < position and tree.universal[noun] in _NOMINAL and tree.labels[verb].startswith("acl")
        if is_relative and label in {"nsubj", "nsubj:pass", "obj"}:
            tree.further.append(("dobj" if label == "obj" else "nsubj", verb, noun))
            tree.labels[position] = _SILENT


def _main_verbs(tree: _Sentence) -> None:
    """``un homme surfe une vague``, where a model has the noun as predicate, and the verb as something like an adjective."""
    for wrong in range(1, tree.size + 1):
        subject = next(iter(tree.children(wrong, "nsubj")), 0)
        copulas = tree.children(wrong, "cop")
        if not subject or tree.universal[wrong] not in {*_NAMING, "ADJ"}:
            continue
        if any(tree.lemmas[p] in tree.language.copulas for p in copulas):
            continue
        verbs = [
            p for p in range(subject + 1, tree.size + 1) if tree.universal[p] == "VERB" and _is_free(tree, p, wrong)
        ]
        verb = next((p for p in verbs if tree.has(p, "VerbForm=Fin")), verbs[0] if verbs and verbs[0] < wrong else 0)
        if not verb:
            continue
        tree.attach(verb, tree.heads[wrong], tree.labels[wrong])
        tree.attach(subject, verb, "nsubj")
        if tree.universal[wrong] == "ADJ":
            tree.attach(wrong, subject, "amod")
        else:
            tree.attach(wrong, verb, "obl" if tree.case(wrong) else "obj")
        for child in tree.children(wrong):
            if tree.is_oblique(child):
                tree.attach(child, *((verb, "obl") if child > verb else (subject, "nmod")))


def _is_free(tree: _Sentence, verb: int, wrong: int) -> bool:
    """Say whether a verb below a word has neither a subject nor a conjunction of its own."""
    at = verb
    while at and at != wrong:
        if tree.labels[at] in {"acl:relcl", "advcl", "xcomp"}:
            return False
        at = tree.heads[at]
    return at == wrong and not tree.children(verb, *_SUBJECTS, "mark")


def _progressives(tree: _Sentence) -> None:
    """``est en train de parler`` -> the infinitive is the verb."""
    for words, _ in _found(tree, tree.language.progressives):
        verb = next(
            (p for p in range(words[-1] + 1, min(words[-1] + 4, tree.size) + 1) if tree.universal[p] == "VERB"), 0
        )
        top = next((word for word in words if tree.heads[word] not in {*words, verb}), 0)
        if not verb or not top or _is_below(tree, tree.heads[top], verb):
            continue
        head = tree.heads[top]
        label = "acl" if tree.universal[head] in _NAMING else tree.labels[top] if not head else "advcl"
        tree.attach(verb, head, label)
        for word in words:
            for child in tree.children(word):
                if child not in words:
                    tree.attach(child, verb, "aux" if tree.labels[child] == "cop" else tree.labels[child])
        for word in words:
            tree.silence(word, verb)
        tree.features[verb] = "Tense=Pres|VerbForm=Part"


def _subjects(tree: _Sentence) -> None:
    """The subject of a verb without one: its governor's, or the noun that a small parser hangs a main verb on."""
    for verb in range(1, tree.size + 1):
        head, label = tree.heads[verb], tree.labels[verb].partition(":")[0]
        is_clause = tree.universal[verb] == "VERB" or tree.children(verb, "cop", "aux:pass")
        if not head or not is_clause or tree.subject(verb):
            continue
        is_finite = tree.has(verb, "VerbForm=Fin") or bool(tree.children(verb, "cop", "aux:pass", "aux:tense", "aux"))
        if label in {"acl", "amod"} and not (is_finite and label == "acl" and tree.labels[verb] == "acl"):
            continue
        if label not in {"acl", "advcl", "conj", "ccomp", "parataxis", "xcomp", "dep", "appos"}:
            continue
        if tree.has(verb, "VerbForm=Inf") and label != "xcomp":
            continue
        if tree.universal[head] in _NAMING:
            while tree.universal[tree.heads[head]] in _NAMING and tree.labels[head] in _OBLIQUE | {"conj"}:
                head = tree.heads[head]
            noun = head if head < verb else 0
            tree.labels[verb] = "dep"
        else:
            noun = tree.subject(head)
        if noun and noun != verb:
            tree.further.append(("nsubj", verb, noun))


def _voices(tree: _Sentence) -> None:
    """``est assis sur`` is active where nobody acts on anything; an adjective with a place is like a verb."""
    for position in range(1, tree.size + 1):
        obliques = [child for child in tree.children(position) if tree.is_oblique(child)]
        agents = [child for child in obliques if tree.lemmas[tree.case(child)] in tree.language.agents]
        passive = tree.children(position, "aux:pass", "nsubj:pass")
        if passive and not agents:
            for child in passive:
                tree.labels[child] = tree.labels[child].removesuffix(":pass")
        elif passive:
            for child in tree.children(position, "nsubj"):
                tree.labels[child] = "nsubj:pass"
            tree.further = [
                ("nsubjpass" if (label, head) == ("nsubj", position) else label, head, word)
                for label, head, word in tree.further
            ]
            for child in tree.children(position, "cop", "aux"):
                tree.labels[child] = "aux:pass"
        if obliques and tree.universal[position] in {"ADJ", "VERB", "ADV"}:
            for child in tree.children(position, "cop"):
                tree.labels[child] = "aux"


def _participles(tree: _Sentence) -> None:
    """``fleurs séchées`` -> amod(fleurs, séchées): a participle that acts on nothing is an attribute."""
    for position in range(1, tree.size + 1):
        if not tree.is_participle(position) or tree.labels[position] not in {"acl", "amod"}:
            continue
        acts = any(
            tree.labels[child] in _OBJECTS or (tree.is_oblique(child) and tree.case(child))
            for child in tree.children(position)
        )
        tree.labels[position] = "acl" if acts else "amod"


def _pronouns(tree: _Sentence) -> None:
    """Reflexive pronouns act on nothing; what is somebody's is a relation."""
    for position in range(1, tree.size + 1):
        if tree.universal[position] not in {"PRON", "DET"}:
            continue
        label = tree.labels[position]
        if tree.has(position, "Poss=Yes") and label.partition(":")[0] in {"det", "nmod"}:
            tree.labels[position] = "nmod:poss"
        elif tree.has(position, "Reflex=Yes") or label.startswith("expl"):
            tree.labels[position], tree.universal[position] = "expl", "PART"
        elif tree.has(position, "PronType=Ind") and tree.universal[position] == "PRON":
            tree.universal[position] = "NOUN"


PASSES: Final[Mapping[str, Callable[[_Sentence], None]]] = {
    "words": _words,
    "hyphens": _hyphens,
    "names": _names,
    "prepositions": _prepositions,
    "adjectives": _adjectives,
    "quantities": _quantities,
    "compounds": _compounds,
    "progressives": _progressives,
    "main verbs": _main_verbs,
    "relatives": _relatives,
    "subjects": _subjects,
    "phrases of verbs": _phrases_of_verbs,
    "articles": _articles,
    "voices": _voices,
    "participles": _participles,
    "pronouns": _pronouns,
}
"""Every pass in order."""


def reword(columns: Columns, language: Language) -> tuple[Columns, list[Arc]]:
    """Return a sentence in Universal Dependencies v2 after every pass, and arcs (of v1) beside those of its tree."""
    tree = _Sentence(columns, language)
    for change in PASSES.values():
        change(tree)
    words = tree.lemmas[1:], tree.universal[1:], columns.tags, tree.features[1:], tree.heads[1:], tree.labels[1:]
    return Columns(columns.forms, *words), tree.further
