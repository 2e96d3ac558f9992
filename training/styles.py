"""The forms in which one caption is written: by people, by captioning models, by chat models, by toolkits."""

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from spicegraph_parser.spice.parse import word_set

ARTICLE = re.compile(r"^(?:an?|the) ")
END_PUNCTUATION = re.compile(r"[\s.!?,;:]+$")
PUNCTUATION = re.compile(r"[.,;:!?\"“”()\[\]]|--+")
CONNECTIVE = re.compile(r"(,? (?:and then|then|followed by|while|as|and|with|before|after) |, )")
"""What joins two clauses of a caption of sounds."""
LINKS = word_set("of in on with at to and near by for from while is are")
CUT_AFTER = LINKS | word_set("a an the her his")
JOINTS = LINKS | word_set("""
    as that who which over under behind before after during into through between next against along around
""")
"""Words between the halves of captions that are crossed."""
SHORTEST_CUT = 3  # words
PROMPTS = (
    "The image features",
    "The image shows",
    "The image depicts",
    "The image captures",
    "The image is of",
    "In the image,",
    "In this image I can see",
    "In this picture we can see",
    "This image shows",
    "This is an image of",
    "This is a photo of",
    "The picture shows",
    "The photo shows",
    "The scene features",
    "The scene is",
    "In this scene,",
    "In the background,",
    "In the foreground,",
    "The main focus of the image is",
    "This video shows",
    "The video shows",
    "The audio contains",
    "The sound of",
    "We can hear",
    "I can see",
    "There is",
    "There are",
)
"""How chat models begin a description."""


def plain(caption: str) -> str:
    """Return the caption lower-cased and without end punctuation, white space made single."""
    return END_PUNCTUATION.sub("", " ".join(caption.lower().split()))


def bare(caption: str) -> str:
    """Return the caption plain and without the article that it begins with."""
    return ARTICLE.sub("", plain(caption))


def toolkit(caption: str) -> str:
    """Return the caption in lower case without any punctuation, as the COCO toolkit's tokenizer leaves it."""
    return " ".join(PUNCTUATION.sub(" ", caption.lower()).split())


def cut(caption: str, dice: random.Random) -> str | None:
    """Return the caption plain and cut off after an article or a preposition, or None where it has none."""
    words = plain(caption).split()
    ends = [end for end in range(SHORTEST_CUT, len(words)) if words[end - 1] in CUT_AFTER]
    return " ".join(words[: dice.choice(ends)]) if ends else None


def prompted(caption: str, dice: random.Random) -> str:
    """Return the caption behind the beginning of a description by a chat model."""
    return f"{dice.choice(PROMPTS)} {caption[:1].lower()}{END_PUNCTUATION.sub('', caption[1:])}."


@dataclass(frozen=True, slots=True)
class Clauses:
    """Clauses of captions of sounds: those that begin one, and the others, each behind its connective."""

    first: Sequence[str]
    later: Sequence[str]

    @classmethod
    def of(cls, captions: Iterable[str]) -> Self:
        """Split captions into their clauses."""
        first: list[str] = []
        later: list[str] = []
        for caption in captions:
            start, *rest = CONNECTIVE.split(END_PUNCTUATION.sub("", caption))
            first.append(start)
            later += map("".join, zip(rest[::2], rest[1::2], strict=True))
        return cls(first, later)

    def mixed(self, dice: random.Random) -> str:
        """Return clauses of up to four captions as one, with or without a full stop, or in the toolkit's form."""
        count = dice.choices((1, 2, 3), weights=(5, 4, 1))[0]
        text = "".join([dice.choice(self.first), *dice.choices(self.later, k=count)])
        form = dice.random()
        return toolkit(text) if form < 0.4 else f"{text}." if form < 0.6 else text


@dataclass(frozen=True, slots=True)
class Halves:
    """Captions cut in two before a word that joins phrases, both halves by that word."""

    first: Sequence[tuple[str, str]]
    later: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, captions: Iterable[str], dice: random.Random) -> Self:
        """Cut each caption that can be cut, at a place chosen at random."""
        first: list[tuple[str, str]] = []
        later: dict[str, list[str]] = {}
        for caption in captions:
            words = caption.split()
            places = [place for place in range(1, len(words) - 1) if words[place].lower() in JOINTS]
            if places:
                place = dice.choice(places)
                joint = words[place].lower()
                first.append((" ".join(words[:place]), joint))
                later.setdefault(joint, []).append(" ".join(words[place:]))
        return cls(first, later)

    def crossed(self, dice: random.Random) -> str:
        """Return the first half of one caption and the second of another that goes on with the same word."""
        start, joint = dice.choice(self.first)
        return f"{start} {dice.choice(self.later[joint])}"


def restyled(caption: str, dice: random.Random) -> str | None:
    """Return the caption in a style chosen at random, or None where that style does not apply to it."""
    style = dice.randrange(5)
    if style == 0:
        return cut(caption, dice)
    if style == 1:
        return prompted(caption, dice)
    return (plain, bare, toolkit)[style - 2](caption)
