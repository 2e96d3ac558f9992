r"""The caption in a completion: without thoughts, or the text in ``<answer>``, ``<caption>`` or ``\boxed{}``."""

from __future__ import annotations

import re
from typing import Final

_THOUGHT: Final = re.compile(r"<(/?)(?:think|thinking|thought|reasoning)\s*>", re.IGNORECASE)
_ANSWER: Final = re.compile(r"<(/?)(answer|caption)\s*>", re.IGNORECASE)
_BOXED: Final = re.compile(r"\\boxed\s*\{")
_TEXT: Final = re.compile(r"\s*\\(?:text|textbf|mathrm)\s*\{(.*)\}\s*", re.DOTALL)
_SPECIAL: Final = re.compile(r"<\|[^<>|]{1,40}\|>|</?(?:s|pad|unk|bos|eos|start_of_turn|end_of_turn)>")


def strip_special_tokens(text: str) -> str:
    """Return a text without the special tokens of common tokenizers, which trainers may leave in it.

    Example:
        >>> strip_special_tokens("A dog runs.<|im_end|>")
        'A dog runs.'
    """
    return _SPECIAL.sub("", text).strip() if "<" in text else text


def answer_of(completion: str) -> str:
    r"""Return the caption that a completion gives as its answer; nothing where it gives none.

    Thoughts are dropped: ``<think>`` to its ``</think>``, also nested, or to the end where it is never closed, and
    the text before a ``</think>`` that was never opened. Of the rest the answer is the text in the last
    ``<answer>`` or ``<caption>``, the innermost one, and of that in the last ``\boxed{}``; without such marks it is
    the rest. What is opened and not closed is no answer; a mark without its partner inside of one is dropped.

    Example:
        >>> answer_of("<think>There is a dog.</think> <answer>A dog runs.</answer>")
        'A dog runs.'
        >>> answer_of("<think>There is a dog, and it")
        ''
        >>> answer_of("A dog runs.")
        'A dog runs.'
    """
    said = _without_thoughts(completion)
    tags = _tagged(said)
    if tags is not None:
        said = tags
    boxed = _boxed(said)
    return (said if boxed is None else boxed).strip()


def _without_thoughts(text: str) -> str:
    parts: list[str] = []
    depth = end = 0
    for tag in _THOUGHT.finditer(text):
        if not tag.group(1):
            if depth == 0:
                parts.append(text[end : tag.start()])
            depth += 1
        elif depth:
            depth -= 1
        else:  # of a thought that began in the prompt
            parts.clear()
        end = tag.end()
    return "".join(parts) if depth else "".join([*parts, text[end:]])


def _tagged(text: str) -> str | None:
    """Return the text of the last complete element; an empty text if none is, and ``None`` without any tag."""
    opened: list[tuple[str, int]] = []
    answer: tuple[int, int] | None = None
    tags = list(_ANSWER.finditer(text))
    for tag in tags:
        name = tag.group(2).lower()
        if not tag.group(1):
            opened.append((name, tag.end()))
        elif any(name == other for other, _ in opened):
            while opened[-1][0] != name:
                opened.pop()
            _, start = opened.pop()
            if answer is None or answer[0] < start:  # else this one is around the last
                answer = start, tag.start()
    if not tags:
        return None
    return "" if answer is None else _ANSWER.sub("", text[slice(*answer)])


def _boxed(text: str) -> str | None:
    r"""Return the text of the last complete ``\boxed{}``; an empty text if none is, and ``None`` without any."""
    boxes = list(_BOXED.finditer(text))
    for box in reversed(boxes):
        depth = 1
        for place in range(box.end(), len(text)):
            depth += {"{": 1, "}": -1}.get(text[place], 0)
            if depth == 0:
                inner = text[box.end() : place]
                plain = _TEXT.fullmatch(inner)
                return plain.group(1) if plain else inner
    return "" if boxes else None
