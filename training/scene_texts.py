"""Sentences of long descriptions, made of short captions with graphs: what is said around them has no graph."""

from collections.abc import Sequence

import numpy as np

from scene_data import Labelled
from scene_moulds import Moulds, arranged, in_background, phrases, together

BEFORE = """the image shows|the image captures|the image depicts|this is a photo of|in this image , there is
in the image we can see|in the foreground ,
in the foreground , you can see|on the left side of the image ,|on the right side of the image ,
on the left ,|to the right ,|there is|there are|the scene features|the scene also includes
in the center of the frame ,|at the top of the picture ,|adding to the scene is|overall ,
beyond this ,|further back ,|the main focus of the image is|the focal point of the photograph is
the composition is dominated by|the photo presents|what appears to be|possibly|it looks like
it seems that|perhaps|there are no|there is no|without any|at the center of it all ,
the picture is taken from above and shows|this is a close-up view of|the video shows|a scene of
an image of|a view of|in the midst of this scene ,|the backdrop is formed by
the setting is a place with|also visible is|partially visible is|the atmosphere is calm , with
with a sense of purpose ,|as the day comes to an end ,|in a moment of quiet ,"""
AFTER = """, adding a touch of charm to the scene|, creating a sense of calm|in the image
in the scene|, suggesting a quiet day|in the foreground|on the left side of the image
, which adds depth to the image|, giving the scene a peaceful atmosphere
that draws the viewer 's attention|and the overall mood is relaxed|, as if time stood still
at the center of the image|, visible in the distance|, indicating that it might be winter
, contributing to the lively ambiance|, inviting the viewer to explore
, a testament to the beauty of nature|, hinting at a story|to the left|to the right
, making it the focal point of the image|, which adds a sense of movement
, creating a beautiful contrast|in this picture|, evoking a feeling of nostalgia|, providing context
, perhaps on a holiday|, possibly enjoying the day|, capturing a moment of everyday life
, full of anticipation"""
ALONE = """the overall atmosphere is one of peace and quiet .|the image does not contain any discernible text .
this adds a sense of depth to the composition .
the image is a harmonious blend of colors and textures .|it is a moment frozen in time .
the relative positions of the objects suggest a well-planned layout .
overall , the image is a story of everyday life .|the lighting is soft and natural .
every element contributes to the narrative of the image .|the mood is calm and inviting .
it is a testament to the beauty of nature .|the style of the image is realistic .
the perspective draws the viewer in .|it 's a scene that speaks of simple pleasures .
there is a sense of anticipation in the air .|the contrast adds visual interest .
the precise location can not be determined .|this is not just an image , but a story .
the photo was taken from a low angle .|the colors are vivid and the details are sharp .
one can almost feel the energy of the moment ."""
JOINTS = """, and|and|while|, while|, with|;|, where|, as|. in addition ,|, next to which is|, along with
, near"""

MOULDED = 0.5  # share of captions that are moulded
IN_BACKGROUND = 0.1  # share of captions whose main thing is in the background
AFTER_BACKGROUND = ((",",), (",", "there", "is"), ("there", "are"), (",", "you", "can", "see"), ("is",), ())


def shifted(own: Labelled, before: Sequence[str], after: Sequence[str]) -> Labelled:
    """Return a sentence with words before and behind it."""
    return arranged(own, (tuple(before), range(len(own.words)), tuple(after)))


def joined(one: Labelled, joint: Sequence[str], other: Labelled) -> Labelled:
    """Return two captions as one sentence."""
    both, size = together(one, other, range(len(other.words))), len(one.words)
    return arranged(both, (range(size), tuple(joint), range(size, len(both.words))))


def without_period(own: Labelled) -> Labelled:
    """Return a sentence without its last period."""
    return Labelled(own.words[:-1], own.pairs, own.relations) if own.words[-1:] == (".",) else own


def made(data: Sequence[Labelled], share: float, random: np.random.Generator) -> list[Labelled]:
    """Return as many sentences as a share of the data: captions joined, with phrases around them, or phrases alone."""
    before, after, alone, joints = map(phrases, (BEFORE, AFTER, ALONE, JOINTS))

    def one_of(values: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
        return values[random.integers(len(values))]

    def bare() -> Labelled:
        return without_period(data[random.integers(len(data))])

    moulds = Moulds(data, random)
    out = []
    for _ in range(int(share * len(data))):
        own = moulds.moulded(bare(), bare()) if random.random() < MOULDED else bare()
        if random.random() < IN_BACKGROUND:
            is_first = random.random() < 0.6
            own = in_background(own, is_first=is_first, joint=one_of(AFTER_BACKGROUND) if is_first else ())
        if random.random() < 0.05:
            out.append(Labelled(one_of(alone), {}, {}))
            continue
        while random.random() < 0.45 and len(own.words) < 30:
            own = joined(own, one_of(joints), moulds.moulded(bare(), bare()) if random.random() < MOULDED else bare())
        front = one_of(before) if random.random() < 0.6 else ()
        behind = one_of(after) if random.random() < 0.5 else ()
        out.append(shifted(own, front, (*behind, ".")))
    return out


def recased(own: Labelled, random: np.random.Generator) -> Labelled:
    """Return a sentence now and then with a capital, a period, or an article in front."""
    words = own.words
    if len(words) > 1 and random.random() < 0.3:
        words = (words[0].capitalize(), *words[1:])
    own = Labelled(words, own.pairs, own.relations, own.style)
    if random.random() < 0.15 and words[-1:] != (".",):
        own = shifted(own, (), (".",))
    if random.random() < 0.1 and words[0] not in {"a", "the", "an", "A", "The", "An"}:
        own = shifted(own, ("The" if random.random() < 0.5 else "the",), ())
    return own
