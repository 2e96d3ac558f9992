"""What the network knows of a word by itself: a few strings, looked up in one table each."""

from __future__ import annotations

__all__ = ["KINDS", "features"]

KINDS = ("form", "suffix4", "suffix3", "suffix2", "prefix3", "case")


def features(form: str) -> tuple[str, ...]:
    """Return the word's feature strings, one for each of ``KINDS``.

    The form is lower-cased; how it was written is a feature of its own, so that "Dog", "dog" and "DOG" share
    what can be shared. Endings and beginnings stand in for words that the training data did not hold.

    >>> features("Skateboards")
    ('skateboards', 'ards', 'rds', 'ds', 'ska', 'title')
    """
    lower = form.lower()
    return lower, lower[-4:], lower[-3:], lower[-2:], lower[:3], _case(form, lower)


def _case(form: str, lower: str) -> str:
    if form == lower:
        letters = "lower"
    elif form[1:] == lower[1:]:
        letters = "title"
    elif form == form.upper():
        letters = "upper"
    else:
        letters = "mixed"
    digit = "+digit" if any(map(str.isdigit, form)) else ""
    hyphen = "+hyphen" if "-" in form else ""
    return letters + digit + hyphen
