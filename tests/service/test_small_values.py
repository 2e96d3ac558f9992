"""Small functions of the service, one example each: names, numbers, texts and places as people see them."""

from __future__ import annotations

import pytest

from spicegraph_scorer import score_tuples
from spicegraph_service.cli.options import system_name, system_names
from spicegraph_service.cli.settings import own_words
from spicegraph_service.engines.local import by_length, in_tasks
from spicegraph_service.engines.objects import flat_scores, is_url
from spicegraph_service.output.charts import ink, ticks, writable
from spicegraph_service.output.grid import BEST, WORST, Grid, headings, ranked, to_latex
from spicegraph_service.output.pages import percent, permalink
from spicegraph_service.output.terminal import printable
from spicegraph_service.report import Pictures, image_sources
from spicegraph_service.report.images import overlay, sentence_spans


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (is_url("s3://bucket/captions"), True),
        (is_url("captions"), False),
        (
            dict(flat_scores({"SPICE": 0.5, "SPICE_categories": {"All": {"f": 0.5}}})),
            {"SPICE": 0.5, "SPICE_categories_All_f": 0.5},
        ),
        (list(in_tasks(iter(["a dog runs", "a cat", "a bus"]), characters=12)), [["a dog runs"], ["a cat", "a bus"]]),
        (
            by_length(["three", "one", "four"], lambda texts: [f"{at} {text}" for at, text in enumerate(texts)]),
            ["2 three", "0 one", "1 four"],
        ),
        (image_sources(Pictures("https://example.org/{id:06}.jpg"), [42]), {42: "https://example.org/000042.jpg"}),
        (sentence_spans("A dog barks. It is brown."), ((0, 12), (13, 25))),
        (printable("a\x1b[2J"), r"a\x1b[2J"),
        ((permalink(1), permalink("1"), permalink("cat")), ("1", '"1"', "cat")),
        ((percent(0.9999), percent(1.0)), ("99.9 %", "100 %")),
        (headings("Metric|text", "F")[0].kind, "text"),
        (ranked([0.1, None, 0.25]), {"0.1000": WORST, "0.2500": BEST}),
        (ranked([0.1, 0.1]), {}),
        (to_latex(Grid("", headings("Bleu_4 > 50 %"), [])).splitlines()[3], r"Bleu\_4 $>$ 50 \% \\"),
        ((ink(1), ink(8)), ("s1", "s1")),
        (writable("a\x1b"), "a\ufffd"),
        (ticks(0, 0.47), [0.0, 0.1, 0.2, 0.3, 0.4]),
        (own_words("Input should be greater than or equal to 1"), "must be at least 1"),
        (system_names(["a.json", "runs/b.json", "b.json"]), ("a", "runs/b.json", "b.json")),
        (system_names(["a.json", "a.json"]), ("a.json", "a.json (2)")),
        (system_name("runs/first.json"), ("first", "runs/first.json")),
        (system_name("mine=runs/first.json"), ("mine", "runs/first.json")),
    ],
)
def test_examples(value: object, expected: object) -> None:
    assert value == expected


def test_the_pictures_of_two_graphs_lie_over_each_other() -> None:
    match = score_tuples([["cat"]], [[["cat"], ["mat"]]]).statistic.match
    assert [(box.name, box.state.name) for box in overlay(match).boxes] == [("cat", "MATCHED"), ("mat", "MISSED")]
