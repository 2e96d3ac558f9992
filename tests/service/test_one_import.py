"""``import spicegraph``: what users call, from one place, loaded when it is used."""

from __future__ import annotations

import json
import pydoc
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import spicegraph

if TYPE_CHECKING:
    from pathlib import Path

ITEMS = [
    spicegraph.Item(1, "a brown dog", ("a black dog", "a dog")),
    spicegraph.Item(2, "two cats sleep", ("two cats", "cats sleep on a bed")),
]


def test_the_names_that_users_call_are_there() -> None:
    wanted = [
        "score",
        "score_captions",
        "parse",
        "load_pipeline",
        "Item",
        "compare",
        "report",
        "read",
        "Client",
        "__version__",
    ]
    assert set(wanted) <= set(spicegraph.__all__) <= set(dir(spicegraph))
    for name in spicegraph.__all__:
        assert getattr(spicegraph, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'scores'"):
        spicegraph.scores  # type: ignore[attr-defined]  # noqa: B018


def test_help_lists_them() -> None:
    shown = pydoc.plain(pydoc.render_doc(spicegraph))
    assert "score_captions(" in shown
    assert "parse(" in shown


def test_importing_loads_nothing_that_is_not_used() -> None:
    program = "import sys, spicegraph; print(sorted({'numpy', 'spacy', 'grpc', 'networkx', 'nltk', 'scipy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.model
def test_parsing_and_scoring_load_neither_spacy_nor_the_server() -> None:
    program = (
        "import sys, spicegraph; spicegraph.parse('a dog'); spicegraph.score_captions(['a dog'], [['a dog']], ['spice', 'bleu']);"
        "print(sorted({'spacy', 'grpc', 'networkx', 'nltk', 'sqlalchemy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.model
def test_one_caption_gives_its_parse_and_several_give_theirs_in_order() -> None:
    assert spicegraph.parse("A brown dog.").tuples == (("dog", "brown"), ("dog",))
    several = spicegraph.parse(["A brown dog.", "A cat."], "en_caption")
    assert [caption.text for caption in several] == ["A brown dog.", "A cat."]
    with pytest.raises(spicegraph.InputError, match="captions"):
        spicegraph.parse(7)  # type: ignore[call-overload]


@pytest.mark.model
def test_a_report_is_a_value_that_writes_itself(tmp_path: Path) -> None:
    made = spicegraph.report(
        {"mine": ITEMS, "other": ITEMS[::-1]}, title="Dogs & <cats>", resampling=spicegraph.Resampling(50)
    )
    values = made.to_dict()
    assert [system["name"] for system in values["systems"]] == ["mine", "other"]
    assert values["items"] == 2
    assert "Dogs &amp; &lt;cats&gt;" in made.to_html()
    assert "srcdoc=" in made._repr_html_()
    for name in ("report.html", "report.md", "report.json"):
        made.save(tmp_path / name)
    assert json.loads((tmp_path / "report.json").read_text()) == values
    assert (tmp_path / "report.md").read_text() == made.to_markdown()
    with pytest.raises(spicegraph.InputError, match=r"a report is written as \.html"):
        made.save(tmp_path / "report.pdf")
    with pytest.raises(spicegraph.InputError, match="can't be written"):
        made.save(tmp_path / "none" / "report.html")


@pytest.mark.model
def test_a_report_names_what_is_wrong_with_its_items() -> None:
    with pytest.raises(spicegraph.InputError, match="image_id 1"):
        spicegraph.report({"mine": [*ITEMS, ITEMS[0]]})
    with pytest.raises(spicegraph.InputError, match="at least one system"):
        spicegraph.report({})
