"""Whether scene graphs lose anything that captions say: the laws that the test suite holds on made captions, on yours.

Each content word of a caption stands in a fact that scores count, or is kept apart for a reason; a caption with a noun
that it does not deny has an object; and a caption with one content word changed never has SPICE 1.0 against itself,
synonyms (of two words, too) aside, and words of which the caption has another form or a synonym elsewhere: facts are
sets, and several facts of one caption may match one of the other.
"""

import argparse
import gzip
import random
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from spicegraph_parser import ParsedCaption, load_pipeline
from spicegraph_parser.spice.loose import NEGATIONS
from spicegraph_parser.spice.parse import Word
from spicegraph_scenes.things import PRONOUNS
from spicegraph_scorer import score_tuples

CONTENT = frozenset({"NN", "VB", "JJ", "CD"})
EMPTY = NEGATIONS | PRONOUNS | {"be", "have", "do", "'s"}


def captions(folder: Path, most: int) -> list[str]:
    """Return captions of every file of a folder (``.txt`` or ``.txt.gz``), by chance and as evenly as they allow."""
    files = sorted(path for path in folder.iterdir() if path.name.endswith((".txt", ".txt.gz")))
    chance = random.Random(1)
    every: list[list[str]] = []
    for path in files:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
            every.append(sorted({line.strip() for line in lines if line.strip()}))
    every.sort(key=len)
    out: list[str] = []
    for number, texts in enumerate(every):
        out += chance.sample(texts, min(len(texts), (most - len(out)) // (len(every) - number)))
    return out


def content(caption: ParsedCaption) -> Iterator[tuple[int, str, str, str]]:
    """Yield the position, form, lemma and tag of every content word."""
    position = 0
    for parse in caption.sentences:
        for word in parse.words:
            is_word = any(map(str.isalnum, word.form))
            if is_word and word.tag[:2] in CONTENT and {word.form.lower(), word.lemma}.isdisjoint(EMPTY):
                yield position, word.form, word.lemma, word.tag
            position += 1


def lost(caption: ParsedCaption) -> list[str]:
    """Return the content words that neither stand in a fact that scores count nor are kept apart for a reason."""
    named = {token for fact in (*caption.said, *caption.apart) for slot in fact.tokens for token in slot}
    return [form for position, form, _, _ in content(caption) if position not in named]


def is_empty(caption: ParsedCaption) -> bool:
    """Say whether a caption has a noun that it does not deny, and no object in its graph."""
    apart = {token for fact in caption.apart if fact.rule == "denied" for slot in fact.tokens for token in slot}
    nouns = [p for p, _, _, tag in content(caption) if tag.startswith("NN") and p not in apart]
    return bool(nouns) and not caption.facts


def changed(captions: Sequence[ParsedCaption], chance: random.Random) -> Iterator[tuple[ParsedCaption, str, str, str]]:
    """Yield captions, each with a text of it that has one content word changed, the word and what stands for it."""
    by_tag: dict[str, list[tuple[str, str]]] = {}
    for caption in captions:
        for _, form, lemma, tag in content(caption):
            if form.isalpha() and form.islower():
                by_tag.setdefault(tag, []).append((form, lemma))
    for caption in captions:
        words = [word for parse in caption.sentences for word in parse.words]
        present = {word.form.lower() for word in words}
        own = [(p, f, lemma, tag) for p, f, lemma, tag in content(caption) if f.isalpha() and words[p].start >= 0]
        if not own:
            continue
        position, form, lemma, tag = chance.choice(own)
        other, other_lemma = chance.choice(by_tag.get(tag) or [(form, lemma)])
        if (
            other_lemma == lemma
            or other in present
            or are_synonyms(form.lower(), other)
            or are_synonyms(lemma, other_lemma)
            or any(map(are_synonyms, beside(words, position, form), beside(words, position, other)))
            or any(are_synonyms(name, plain) for name, plain in crossed(words, position, lemma, other_lemma))
        ):
            continue
        word = words[position]
        yield caption, caption.text[: word.start] + other + caption.text[word.end :], form, other


def beside(words: Sequence[Word], position: int, form: str) -> Iterator[str]:
    """Yield a form with each of the words beside its place, as names of two words ("living room", "sitting room")."""
    if position:
        yield f"{words[position - 1].form} {form}".lower()
    if position + 1 < len(words):
        yield f"{form} {words[position + 1].form}".lower()


def crossed(words: Sequence[Word], position: int, lemma: str, other: str) -> Iterator[tuple[str, str]]:
    """Yield each of two lemmas with the word behind it and the other one alone ("go for" and "hold" are synonyms)."""
    behind = words[position + 1].form.lower() if position + 1 < len(words) else ""
    yield from ((f"{lemma} {behind}", other), (f"{other} {behind}", lemma)) if behind else ()


@cache
def are_synonyms(one: str, other: str) -> bool:
    """Say whether SPICE takes two words for one: a synset has both, of whatever part of speech."""
    return score_tuples([(one,)], [[(other,)]]).scores["All"]["f"] == 1.0


def is_elsewhere(caption: ParsedCaption, word: str, times: int) -> bool:
    """Say whether a caption has a word more than so many times, or another that SPICE takes for it: it adds nothing."""
    own = [(form.lower(), lemma) for _, form, lemma, _ in content(caption)]
    others = {text for form, lemma in own if form != word for text in (form, lemma)}
    return [form for form, _ in own].count(word) > times or any(are_synonyms(word, o) for o in others if o.isalpha())


def spice(one: ParsedCaption, other: ParsedCaption) -> float:
    """Return SPICE of one caption against another."""
    ours, theirs = (sorted({fact.words for fact in caption.said}) for caption in (one, other))
    return score_tuples(ours, [theirs]).scores["All"]["f"] or 0.0


def shown(title: str, rows: Iterable[str], total: int) -> None:
    """Print how many rows there are, and some."""
    own = list(rows)
    print(f"{title}: {len(own)} of {total:,}")
    for row in own[:10]:
        print(f"  {row}")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="captions, one per line, in files .txt or .txt.gz")
    parser.add_argument("--most", type=int, default=20_000, help="captions that are read")
    arguments = parser.parse_args()
    pipeline = load_pipeline("scene")
    read = list(pipeline.captions(captions(arguments.folder, arguments.most)))
    shown("captions that lose a word", (f"{c.text[:80]!r}: {lost(c)}" for c in read if lost(c)), len(read))
    shown("captions with a noun and without an object", (repr(c.text[:100]) for c in read if is_empty(c)), len(read))
    pairs = list(changed(read, random.Random(2)))
    others = pipeline.captions(text for _, text, _, _ in pairs)
    same = (
        f"{caption.text[:80]!r}: {form} -> {by}"
        for (caption, _, form, by), other in zip(pairs, others, strict=True)
        if (spice(caption, other) == 1.0 or spice(other, caption) == 1.0)
        and not (is_elsewhere(other, form.lower(), 0) or is_elsewhere(other, by, 1))
    )
    shown("changes of one word with SPICE 1.0", same, len(pairs))


if __name__ == "__main__":
    main()
