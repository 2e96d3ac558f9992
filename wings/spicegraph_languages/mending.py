"""What small parsers get wrong in captions of other languages than English, mended: each pass a kind of mistake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from spicegraph_languages.tree import NAMING, NOMINAL, SILENT, SUBJECTS, VERBAL, Sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from spicegraph_parser.languages import Language


def forms(tree: Sentence) -> None:
    """Lemmas of contractions, and classes and lemmas of words that small models often have wrong."""
    language = tree.language
    for position in range(1, tree.size + 1):
        form, found = tree.forms[position], tree.universal[position]
        if form in language.contractions and found not in {"DET", "NOUN", "VERB"}:
            tree.lemmas[position] = language.contractions[form]
        for universal, table, features, fits in _CLASSES:
            known = table(language)
            if form in known and (found == universal or fits(tree, position)):
                tree.lemmas[position] = known[form]
                if found != universal or (features == "VerbForm=Fin" and not tree.has(position, features)):
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


def _is_bare(tree: Sentence, position: int) -> bool:
    return tree.universal[position - 1] not in {"DET", "NUM"} and not tree.children(position, "det", "case", "nummod")


def _is_like_adjective(tree: Sentence, position: int) -> bool:
    before, behind = tree.universal[position - 1], [*tree.universal, ""][position + 1]
    is_in_front = behind == "NOUN" or [*tree.forms, ""][position + 1] in tree.language.nouns
    if behind == "ADJ" and before == "DET":
        return _is_like_prenominal(tree, position)
    return before in {"NOUN", "PROPN", "ADJ"} or (is_in_front and not tree.children(position, "cop"))


def _is_like_prenominal(tree: Sentence, position: int) -> bool:
    """Say whether an adjective's "amod" behind it is really its noun: "vieil escalier"."""
    is_one = tree.language.adjectives.get(tree.forms[position]) in tree.language.prenominal
    behind = tree.children(position, "amod")
    return is_one and position + 1 in behind and tree.forms[position + 1] not in tree.language.adjectives


def _is_like_verb(tree: Sentence, position: int) -> bool:
    before, behind = tree.universal[position - 1], [*tree.universal, "PUNCT"][position + 1]
    return (
        before in {"NOUN", "PROPN", "ADJ", "PRON", "ADV"}
        and behind in {"DET", "ADP", "ADV", "SCONJ", "CCONJ", "PUNCT", "PRON", "NUM"}
        and _is_bare(tree, position)
    )


def _is_like_noun(tree: Sentence, position: int) -> bool:
    return tree.universal[position - 1] in {"DET", "NUM", "ADJ"}


def _is_open(tree: Sentence, position: int) -> bool:
    """Say whether a word is of an open class that a model takes for an article, or a noun that it takes for a verb."""
    found, before = tree.universal[position], tree.universal[position - 1]
    if found == "DET":
        is_article = tree.feature(position, "PronType") in {"Art", ""} and not tree.has(position, "Poss=Yes")
        return is_article and tree.lemmas[position] not in tree.language.articles
    if found == "VERB":
        return before == "DET" and not tree.has(position, "VerbForm=Part")
    behind = tree.universal[position + 1 : position + 3]
    return (
        found == "ADJ"
        and before == "DET"
        and not {"NOUN", "PROPN", "CCONJ", "VERB"} & {*behind}
        and not tree.is_adjective(position)
    )


_CLASSES: Final[
    tuple[tuple[str, Callable[[Language], Mapping[str, str]], str, Callable[[Sentence, int], bool]], ...]
] = (
    ("NOUN", lambda language: language.nouns, "_", _is_like_noun),
    ("VERB", lambda language: language.participles, "Tense=Past|VerbForm=Part", _is_bare),
    ("VERB", lambda language: language.verbs, "VerbForm=Fin", _is_like_verb),
    ("ADJ", lambda language: language.adjectives, "_", _is_like_adjective),
)


def _conjugate(tree: Sentence, position: int) -> None:
    """Verbs by their endings: class and lemma of "roulent", which a model takes for an adverb."""
    form, language = tree.forms[position], tree.language
    ending = next((ending for ending in language.verb_endings if form.endswith(ending)), "")
    if not ending or form in language.participles or form in language.verbs:
        return
    is_other = tree.universal[position] in {"ADV", "ADJ", "NOUN", "PROPN"}
    if is_other and (features := _features_by_ending(tree, position, ending)) and _is_bare(tree, position):
        tree.universal[position], tree.features[position], tree.lemmas[position] = "VERB", features, form
        _rehang(tree, position)
    if tree.universal[position] == "VERB" and not tree.lemmas[position].endswith(language.infinitives):
        tree.lemmas[position] = form.removesuffix(ending) + language.verb_endings[ending]


def _features_by_ending(tree: Sentence, position: int, ending: str) -> str:
    """Return the verb features implied by a word's ending and neighbours, or an empty string."""
    behind = tree.universal[position + 1 : position + 2]
    if ending.endswith("ant") and behind in (["DET"], ["ADP"]):
        return "Tense=Pres|VerbForm=Part"
    is_plural = ending == "ent" and not tree.forms[position].endswith("ment") and tree.has(position - 1, "Number=Plur")
    is_named = tree.universal[position - 1] in {"NOUN", "PROPN", "ADJ"}
    return "VerbForm=Fin" if is_plural or (ending == "e" and behind == ["DET"] and is_named) else ""


def _rehang(tree: Sentence, position: int) -> None:
    """Hang a word whose class was wrong as one of its class does."""
    {"VERB": _rehang_verb, "NOUN": _rehang_noun, "ADJ": _rehang_adjective}[tree.universal[position]](tree, position)


def _rehang_verb(tree: Sentence, position: int) -> None:
    head = tree.heads[position]
    if head and head < position and tree.universal[head] in NAMING:
        tree.labels[position] = "acl"
    elif tree.labels[position] in {"amod", "advmod", "nmod", "case", "obl"}:
        tree.labels[position] = "dep"
    below = [p for p in tree.children(position) if p < position]
    nouns = [p for p in below if tree.universal[p] in NAMING and not tree.case(p)]
    if nouns and not tree.subject(position):
        tree.labels[nouns[0]] = "nsubj"


def _rehang_noun(tree: Sentence, position: int) -> None:
    head = tree.heads[position]
    verbs = [p for p in tree.children(position) if p < position and tree.universal[p] == "VERB"]
    is_under_adjective = head in (position - 1, position + 1) and tree.universal[head] == "ADJ"
    if verbs and not is_under_adjective:
        tree.promote(verbs[-1], "obj")
    elif is_under_adjective or (head and tree.labels[position] == "det"):
        tree.promote(position, "amod")


def _noun_of(tree: Sentence, adjective: int) -> int:
    """Return the noun that an adjective is of: before it, or right behind it, where it is made one; 0: none."""
    noun = _noun_before(tree, adjective)
    if noun:
        return noun
    if tree.universal[adjective + 1 : adjective + 2] == ["NOUN"]:
        return adjective + 1
    if not _is_like_prenominal(tree, adjective):
        return 0
    tree.universal[adjective + 1] = "NOUN"
    return adjective + 1


def _heir(tree: Sentence, position: int, noun: int) -> int:
    """Return the dependent that replaces a word: a verb, subject, or ancestor of its noun."""
    below = tree.children(position)
    verbs = [p for p in below if tree.universal[p] in VERBAL or tree.children(p, "cop", "aux:pass")]
    subjects = tree.children(position, *SUBJECTS)
    return [*verbs, *subjects, *(p for p in below if tree.is_below(noun, p))][0]


def _rehang_adjective(tree: Sentence, position: int) -> None:
    noun = _noun_of(tree, position)
    if not noun:
        return
    if noun != tree.heads[position] and tree.is_below(noun, position):
        tree.promote(_heir(tree, position, noun), "amod")
    tree.attach(position, noun, "amod")
    for child in tree.children(position):
        if tree.universal[child] in {*NAMING, *VERBAL} and tree.labels[child] != "conj":
            tree.attach(child, noun, "acl" if tree.universal[child] in VERBAL else "nmod")


def _noun_before(tree: Sentence, position: int) -> int:
    """Return the noun in front of an adjective, with other adjectives between them at most, or 0."""
    at = position - 1
    while at and tree.universal[at] in {"ADJ", "ADV", "CCONJ"}:
        at -= 1
    return at if tree.universal[at] in NAMING else 0


def adjectives(tree: Sentence) -> None:
    """Tag words labelled "amod" as adjectives, and hang them on the agreeing noun in front."""
    for position in range(1, tree.size + 1):
        if tree.labels[position] != "amod":
            continue
        head, near = tree.heads[position], position - 1
        if tree.universal[position] == "NOUN" == tree.universal[head] and head == position + 1:  # un gril brillant
            tree.promote(position, "amod")
            position, head, near = head, position, position  # noqa: PLW2901
        if tree.universal[position] in {"NOUN", "PROPN", "DET", "ADV"}:
            tree.universal[position] = "ADJ"
        if tree.labels[near] == SILENT and tree.forms[near].isalnum():  # T-shirt
            near = tree.heads[near]
        is_nearer = tree.universal[position] == "ADJ" and near > head and tree.universal[near] == "NOUN"
        is_free = tree.is_below(near, head) and not tree.is_below(near, position)
        if is_nearer and is_free and _agree(tree, near, position) and not is_compound(tree, near):
            tree.attach(position, near, "amod")


def _agree(tree: Sentence, noun: int, adjective: int) -> bool:
    pairs = [(tree.feature(noun, name), tree.feature(adjective, name)) for name in ("Gender", "Number")]
    return all(of_noun == other or not of_noun or not other for of_noun, other in pairs)


def is_compound(tree: Sentence, noun: int) -> bool:
    """Say whether a noun says of which kind another one is: "de pêche" of "tente de pêche"."""
    case, head = tree.case(noun), tree.heads[noun]
    return (
        tree.labels[noun] in {"nmod", "obl:arg", "obl:mod"}
        and tree.universal[noun] in NAMING
        and tree.universal[head] == "NOUN"
        and 0 < noun - head <= 3
        and bool(case)
        and tree.lemmas[case] in tree.language.of
        and tree.forms[case] not in {form for form in tree.language.contractions if "'" not in form and "’" not in form}
        and not tree.children(noun, "det", "nummod", "nmod:poss", "det:poss")
        and not tree.children(case)
        and not tree.has(noun, "Number=Plur")
    )


def phrases_of_verbs(tree: Sentence) -> None:
    """``un homme dormant dans une chambre``: the phrase behind a verb hangs on it."""
    for noun in range(2, tree.size + 1):
        head, verb = tree.heads[noun], _verb_before(tree, noun)
        label = tree.labels[noun].partition(":")[0]
        if not verb or verb == head or tree.universal[noun] not in NOMINAL or tree.is_below(verb, noun):
            continue
        is_object = not tree.case(noun) and not tree.children(verb, "obj")
        if label in {"nmod", "appos", "obl", "dep", "amod"} and head in (tree.heads[verb], tree.subject(verb)):
            if tree.case(noun) or is_object:
                tree.attach(noun, verb, "obj" if is_object else "obl")
        elif label == "obj" and head > noun and is_object:
            tree.attach(noun, verb, "obj")


def _verb_before(tree: Sentence, noun: int) -> int:
    """Return the verb right in front of a noun phrase, or the finite one between it and the noun that it hangs on."""
    first = min([noun, *[child for child in tree.children(noun) if child < noun]])
    verb, head = first - 1, tree.heads[noun]
    if tree.universal[verb] == "ADV" and tree.heads[verb] == verb - 1:
        verb -= 1
    if tree.universal[verb] == "VERB":
        return verb
    between = (p for p in range(noun - 1, head, -1) if tree.universal[p] == "VERB" and tree.subject(p) == head)
    return next(between, 0) if head and tree.case(noun) else 0


def main_verbs(tree: Sentence) -> None:
    """``un homme surfe une vague``, where a model has the noun as predicate, and the verb as its adjective."""
    for wrong in range(1, tree.size + 1):
        subject = next(iter(tree.children(wrong, "nsubj")), 0)
        copulas = {tree.lemmas[p] for p in tree.children(wrong, "cop")}
        if not subject or tree.universal[wrong] not in {*NAMING, "ADJ"} or copulas & tree.language.copulas:
            continue
        if tree.universal[wrong] == "ADJ" and _noun_before(tree, wrong) not in {0, subject}:
            _rehang_adjective(tree, wrong)
        elif verb := _verb_for(tree, wrong, subject):
            _enthrone(tree, verb, wrong, subject)


def _verb_for(tree: Sentence, wrong: int, subject: int) -> int:
    """Return the verb that should stand in a word's place: a finite one, or one between it and its subject; or 0."""
    behind = range(subject + 1, tree.size + 1)
    verbs = [p for p in behind if tree.universal[p] == "VERB" and _is_free(tree, p, wrong)]
    return next((p for p in verbs if tree.has(p, "VerbForm=Fin")), verbs[0] if verbs and verbs[0] < wrong else 0)


def _enthrone(tree: Sentence, verb: int, wrong: int, subject: int) -> None:
    tree.attach(verb, tree.heads[wrong], tree.labels[wrong])
    tree.attach(subject, verb, "nsubj")
    if tree.universal[wrong] == "ADJ":
        tree.attach(wrong, subject, "amod")
    else:
        tree.attach(wrong, verb, "obl" if tree.case(wrong) else "obj")
    for child in tree.children(wrong):
        if tree.is_oblique(child):
            tree.attach(child, *((verb, "obl") if child > verb else (subject, "nmod")))


def _is_free(tree: Sentence, verb: int, wrong: int) -> bool:
    """Say whether a verb below a word has neither a subject nor a conjunction of its own."""
    at = verb
    while at and at != wrong:
        if tree.labels[at] in {"acl:relcl", "advcl", "xcomp"}:
            return False
        at = tree.heads[at]
    return at == wrong and not tree.children(verb, *SUBJECTS, "mark")
