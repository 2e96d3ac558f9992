"""What models say around captions: phrases that open them, refusals, further lines, one caption for all images."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from spicegraph_parser.errors import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spicegraph_scorer.core.items import Item

_FEWEST: Final = 5
_MOST: Final = 0.5
_SHARE: Final = 0.1
_REFUSED: Final = 0.01  # People, too, write "I am unable to see an image above.", one of 6,000 captions of COCO.
_ALL: Final = 0.9
_SHOWN: Final = 60

_PICTURE: Final = r"(?:image|picture|photo|photograph|scene|video|audio|clip|figure|screenshot)"
_SHOWS: Final = (
    r"(?:shows?|depicts?|features?|captures?|displays?|illustrates?|contains?|presents?|is (?:of|about)|we see)"
)
_OPENING: Final = re.compile(
    rf"(?:in (?:the|this) {_PICTURE}\b|(?:the|this)(?: given| provided)? {_PICTURE} {_SHOWS}\b"
    rf"|(?:here is|this is) an? {_PICTURE} of\b)",
    re.IGNORECASE,
)
_REFUSAL: Final = re.compile(
    r"(?:i['’]?m sorry|i am sorry|sorry, (?:but )?i\b|i (?:can(?:no|['’])t|am unable to|am not able to)\b|as an ai\b)",
    re.IGNORECASE,
)

_FAILED: Final = re.compile(
    r"(?:failed to obtain answer|error(?: code)?\s*:|(?:http )?(?:error )?[45]\d\d\b:? (?:too many|internal|bad)"
    r"|(?:api|request|connection|rate limit|timeout)\w* (?:error|failed|exceeded|timed out)"
    r"|an error occurred|internal server error|traceback \(most|\{[\"']error)",
    re.IGNORECASE,
)


def phrase_notes(source: str, items: Sequence[Item]) -> Iterator[str]:
    """Yield notes on refusals, failures, boilerplate and repeats in candidates, which stay unchanged."""
    candidates = [item.candidate.strip() for item in items]
    of_all = counted(len(items), "candidate")
    refused = sum(_REFUSAL.match(text) is not None for text in candidates)
    if refused and refused >= _REFUSED * len(items):
        yield f"{source}: {refused:,} of {of_all} say that the model can't answer, which is scored as a caption"
    if failed := [text for text in candidates if _FAILED.match(text)]:
        yield (
            f"{source}: {len(failed):,} of {of_all} say that a program failed, which is scored as a caption: "
            f"{failed[0][:_SHOWN]!a}"
        )
    if len(items) < _FEWEST:
        return
    opened = [match.group() for text in candidates if (match := _OPENING.match(text))]
    if len(opened) > _MOST * len(items) and not _open_alike(items):
        ((phrase, _),) = Counter(opened).most_common(1)
        yield (
            f"{source}: {len(opened):,} of {of_all} open with words such as {phrase!a}, which count as part of the "
            "caption; references do not"
        )
    if (lines := sum("\n" in text for text in candidates)) >= _SHARE * len(items):
        yield f"{source}: {lines:,} of {of_all} have several lines, which all count as the caption"
    ((text, equal),) = Counter(candidates).most_common(1)
    images = len({item.references for item in items})
    if equal >= _ALL * len(items) and text and images > _MOST * len(items):
        yield f"{source}: {equal:,} of {of_all} are the same: {text[:_SHOWN]!a}"


def _open_alike(items: Sequence[Item]) -> bool:
    """Say whether references open with such phrases as often."""
    references = [text for item in items for text in item.references]
    return sum(_OPENING.match(text.strip()) is not None for text in references) > _MOST * len(references)
