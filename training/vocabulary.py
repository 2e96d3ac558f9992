"""Put words that captions seldom hold into captions, so that the reference parser says how it reads them.

The parser's grammar decides by tags; which tags a word can have, it knows from a lexicon or guesses from the
word's shape. Some content words of a short parsed caption (``--replace``: what share) are replaced by others of their
kind; the new caption is parsed again, so nothing depends on the kinds being right. Words are those of
WordNet and their inflected forms, as far as ``wordfreq`` finds them in use. Writes captions, one per line.
"""

import argparse
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wordfreq import top_n_list

import silver
from heldout import Hashes, add_hashes, is_held_out, kind_of
from spicegraph_parser.spice.index import Lexicon
from spicegraph_parser.spice.lexicon import load_lexicon
from spicegraph_parser.spice.wordnet import WordNet, load_wordnet

LONGEST = 11  # words of a caption to fill: short ones are parsed fast
FAMILIAR = 5  # a word seen so often with a tag is left out for it
VERBS = ("VB", "VBP", "VBZ", "VBG", "VBN", "VBD")


def kinds(word: str, lexicon: Lexicon, wordnet: WordNet) -> set[str]:
    """Return the tags of the slots that a word is tried in, by its parts of speech and its ending."""
    synsets = (lexicon.synset_at(entry) for entry in lexicon.entries(word))
    own = {reading.part for synset in synsets for reading in wordnet.readings(synset)}
    found: set[str] = set()
    if "n" in own:
        found.add("NN")
    if "a" in own:
        found.add("JJ")
    if "r" in own:
        found.add("RB")
    if "v" in own:
        found |= {"VB", "VBP"}
    if word.endswith("s") and "n" not in own and wordnet.senses(word, "n"):
        found.add("NNS")
    if "v" not in own and wordnet.senses(word, "v"):
        if word.endswith("s"):
            found.add("VBZ")
        elif word.endswith("ing"):
            found.add("VBG")
        else:
            found |= {"VBN", "VBD"}
    return found


@dataclass(slots=True)
class Decks:
    """Words by tag; each deck is dealt from end to end, then shuffled anew."""

    words: Mapping[str, Sequence[str]]
    random: random.Random
    left: dict[str, list[str]] = field(default_factory=dict)

    def deal(self, tag: str) -> str:
        """Return the next word for a slot."""
        left = self.left.setdefault(tag, [])
        if not left:
            left += self.words[tag]
            self.random.shuffle(left)
        return left.pop()


def fill(sentence: silver.Sentence, decks: Decks, share: float) -> str | None:
    """Return the sentence with some content words replaced, or None where none was."""
    words = [
        decks.deal(tag) if tag in decks.words and decks.random.random() < share else word
        for word, tag in zip(sentence.words, sentence.tags, strict=True)
    ]
    if words[0] != sentence.words[0] and sentence.words[0][:1].isupper():
        words[0] = words[0].capitalize()
    return " ".join(words) if tuple(words) != sentence.words else None


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("silver", type=Path, nargs="+", help="parses whose short captions are filled")
    parser.add_argument(
        "--known", type=Path, nargs="*", default=[], help="further parses that say which words are known"
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--words", type=int, default=120_000, help="most frequent words looked at")
    parser.add_argument("--captions", type=int, default=46_500)
    parser.add_argument("--replace", type=float, default=0.5, help="share of content words replaced")
    parser.add_argument("--seed", type=int, default=1)
    add_hashes(parser)
    options = parser.parse_args()
    hashes = Hashes.read(options.held_out_hashes)
    seen: Counter[tuple[str, str]] = Counter()
    frames: list[silver.Sentence] = []
    for path in [*options.silver, *options.known]:
        for caption in silver.read(path, hashes):
            for sentence in caption.sentences:
                seen.update((w.lower(), t) for w, t in zip(sentence.words, sentence.tags, strict=True))
            short = len(caption.sentences) == 1 and len(caption.sentences[0].words) <= LONGEST
            if short and path in options.silver and not is_held_out(caption.text, kind_of(path)):
                frames.append(caption.sentences[0])
    lexicon, wordnet = load_lexicon(), load_wordnet()
    decks: dict[str, list[str]] = {}
    for word in top_n_list("en", options.words):
        if word.isascii() and word.isalpha() and len(word) > 1:
            for tag in sorted(kinds(word, lexicon, wordnet)):
                if seen[word, tag] < FAMILIAR:
                    decks.setdefault(tag, []).append(word)
    print({tag: len(words) for tag, words in decks.items()}, len(frames))
    dice = random.Random(options.seed)
    dealt = Decks(decks, dice)
    dice.shuffle(frames)
    captions: dict[str, None] = {}
    while len(captions) < options.captions:
        for frame in frames:
            text = fill(frame, dealt, options.replace)
            if text is not None:
                captions[text] = None
    options.out.write_text("".join(f"{text}\n" for text in list(captions)[: options.captions]), encoding="utf-8")


if __name__ == "__main__":
    main()
