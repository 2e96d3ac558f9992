"""METEOR against what its Java program answers: every statistic equal, every score to 1e-12."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from spicegraph_scorer.metrics.meteor import (
    MeteorData,
    MeteorStatistic,
    TextOptions,
    coco_texts,
    load_data,
    score_texts,
)
from spicegraph_scorer.metrics.meteor.data import find_sources
from spicegraph_scorer.metrics.meteor.metric import add_counts, score
from spicegraph_scorer.metrics.meteor.text import english_stemmer, normalize, split_line

pytestmark = pytest.mark.slow

GOLDEN = Path(__file__).parents[1] / "golden" / "meteor"

OPTIONS = {
    "stdio_norm": TextOptions(),
    "stdio_generated": TextOptions(),
    "stdio_nonorm": TextOptions(normalize=False),
    "stdio_lower": TextOptions(normalize=False, lowercase=True),
    "stdio_norm_nopunct": TextOptions(punctuation=False),
}


def lines(name: str) -> list[Any]:
    with gzip.open(GOLDEN / f"{name}.jsonl.gz", "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def line(statistic: MeteorStatistic) -> str:
    """The counts as the program prints them."""
    return " ".join(map(str, map(float, statistic.counts)))


def close(value: str) -> Any:
    return pytest.approx(float(value), rel=1e-12, abs=0)


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> MeteorData:
    # One index for all test processes of a run: load_data lets them wait for the one that builds it.
    return load_data(cache=tmp_path_factory.getbasetemp().parent / "meteor")


def statistics(items: list[Any], data: MeteorData, options: TextOptions) -> list[MeteorStatistic]:
    # pycocoevalcap edits the candidate so before it writes the line
    texts = [(i["candidate"].replace("|||", "").replace("  ", " "), i["references"]) for i in items]
    return score_texts(texts, data=data, options=options)


@pytest.mark.parametrize("name", OPTIONS)
def test_statistics_and_scores_equal_the_jars(name: str, data: MeteorData) -> None:
    items = lines(name)
    found = statistics(items, data, OPTIONS[name])
    assert list(map(line, found)) == [item["stats"] for item in items]
    assert [s.score for s in found] == [close(item["score"]) for item in items]


def test_corpus_scores_equal_the_jars(data: MeteorData) -> None:
    items = lines("stdio_norm")
    counts = {item["id"]: s.counts for item, s in zip(items, statistics(items, data, TextOptions()), strict=True)}
    for item in items:
        assert score(add_counts([counts[item["id"]]])) == close(item["eval_total"])
    groups = json.loads(gzip.decompress((GOLDEN / "corpus_groups.json.gz").read_bytes()))
    assert len(groups) == 37
    for group in groups:
        assert score(add_counts(counts[i] for i in group["ids"])) == close(group["corpus_score"]), group["name"]


@pytest.mark.parametrize("name", ["alignments_single_norm", "alignments_5ref_norm"])
def test_alignments_equal_the_jars(name: str, data: MeteorData) -> None:
    items = lines(name)
    for item, found in zip(items, statistics(items, data, TextOptions()), strict=True):
        alignment = found.alignment
        assert [list(match) for match in alignment.matches] == item["matches"]
        assert " ".join(alignment.candidate) == item["test_tokens_line"]
        assert " ".join(alignment.reference) == item["ref_tokens_line"]
        assert found.score == close(item["score"])


def test_coco_evaluations_equal_the_jars(data: MeteorData) -> None:
    systems = json.loads(gzip.decompress((GOLDEN / "coco_items.json.gz").read_bytes()))
    assert set(systems) == {"near", "far", "human"}
    for system in systems.values():
        texts = [coco_texts(i["candidate"].split(), [r.split() for r in i["references"]]) for i in system["items"]]
        found = score_texts(texts, data=data)
        assert list(map(line, found)) == [item["stats"] for item in system["items"]]
        assert [s.score for s in found] == [close(item["score"]) for item in system["items"]]
        assert score(add_counts(s.counts for s in found)) == close(system["corpus"])


def test_normalizer_equals_the_jars() -> None:
    prefixes = find_sources().prefixes
    items = lines("normalizer_en_keep_punct")
    assert len(items) == 12_498
    assert [normalize(item["in"], prefixes=prefixes) for item in items] == [item["out"] for item in items]


def test_stems_equal_the_jars() -> None:
    stem = english_stemmer()
    text = gzip.decompress((GOLDEN / "stems_en.tsv.gz").read_bytes()).decode()
    pairs = [line.split("\t") for line in text.split("\n") if line]
    assert len(pairs) == 168_213
    assert [word for word, expected in pairs if stem(word) != expected] == []


ANSWERED = [c for c in json.loads((GOLDEN / "protocol.json").read_text()) if not c["out"][0].startswith("Error")]


@pytest.mark.parametrize("case", ANSWERED, ids=lambda case: case["line"])
def test_lines_score_as_the_jar_answers(case: dict[str, Any], data: MeteorData) -> None:
    command, *fields = split_line(case["line"])
    if command.upper().startswith("SCORE"):
        *references, candidate = fields
        (found,) = score_texts([(candidate, references)], data=data)
        assert [line(found)] == case["out"]
        return
    counts = [tuple(map(float, field.split()[:23])) for field in fields]
    total = [add_counts(counts)] if command.upper().startswith("EVAL") else []
    assert [score(one) for one in [*counts, *total]] == [close(value) for value in case["out"]]
