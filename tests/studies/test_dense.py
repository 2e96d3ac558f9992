"""Dense video captions: three videos by hand at every threshold, SODA, paragraphs, the command, and what is refused."""

from __future__ import annotations

import json
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser import InputError, load_pipeline
from spicegraph_scorer import Corpus, FactCache, Item
from spicegraph_scorer.core.data import Resources
from spicegraph_scorer.metrics import make_metrics
from spicegraph_service.cli import main
from spicegraph_studies.dense import Dense, SodaOrder, best_in_order, find_dense, overlaps
from spicegraph_studies.dense.events import Missing, read_dense

if TYPE_CHECKING:
    from pathlib import Path

DOG, CAT, BIRD, TREE = "a dog runs", "a cat sits", "a bird flies", "tall green trees"

# Video 1, captions: [0, 10] DOG, [10, 20] CAT, [30, 40] TREE. References of the first file: [0, 8] DOG, overlap 8 / 10;
# [12, 20] BIRD, 8 / 10 of the second caption. Of the second file: [0, 16] DOG, 10 / 16 of the first caption and 6 / 20 of
# the second. The third caption meets nothing.
# Video 2, one caption: [0, 20] BIRD. First file: [0, 20] BIRD, overlap 1. Not in the second file.
# Video 3, one caption: [0, 5] CAT. First file: [5, 9] CAT, overlap 0; second file: [0, 10] CAT, 5 / 10.
RESULTS = {
    "version": "VERSION 1.0",
    "results": {
        "v_1": [
            {"sentence": DOG, "timestamp": [0, 10]},
            {"sentence": CAT, "timestamp": [10, 20]},
            {"sentence": TREE, "timestamp": [30, 40]},
        ],
        "v_2": [{"sentence": BIRD, "timestamp": [0.0, 20.0]}],
        "v_3": [{"sentence": CAT, "timestamp": [0, 5]}],
    },
    "external_data": {"used": False},
}
FIRST = {
    "v_1": {"duration": 40, "timestamps": [[12, 20], [0, 8]], "sentences": [BIRD, DOG]},
    "v_2": {"duration": 20, "timestamps": [[0, 20]], "sentences": [BIRD]},
    "v_3": {"duration": 10, "timestamps": [[5, 9]], "sentences": [CAT]},
}
SECOND = {
    "v_1": {"duration": 40, "timestamps": [[0, 16]], "sentences": [DOG]},
    "v_3": {"duration": 10, "timestamps": [[0, 10]], "sentences": [CAT]},
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, content in (("results", RESULTS), ("val_1", FIRST), ("val_2", SECOND)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    return tmp_path


def found(metrics: str, soda: str = "rouge", **options: Any) -> Dense:
    corpus = read_dense("results.json", ["val_1.json", "val_2.json"])
    made = make_metrics([*metrics.split(","), *soda.split(",")], Resources(lambda: FactCache(load_pipeline())))
    of = {name: made[name] for name in metrics.split(",")}
    return find_dense(corpus, of, {name: made[name] for name in soda.split(",")}, **options)


def test_overlap_is_intersection_over_union() -> None:
    both = overlaps([(0, 10), (10, 20), (30, 40)], [(0, 8), (12, 20), (0, 16)])
    assert both == pytest.approx(np.array([[0.8, 0, 10 / 16], [0, 0.8, 6 / 20], [0, 0, 0]]), abs=1e-8)
    assert overlaps([(5, 5)], [(5, 5)]).tolist() == [[0.0]]  # no length, no overlap
    assert overlaps([], [(0, 1)]).shape == (0, 1)


def test_every_threshold_by_hand(files: Path) -> None:
    """ROUGE-L of equal texts is 1, of "a cat sits" and "a bird flies" a third, as "a dog runs"; of others 0.

    An overlap of exactly the threshold is below it, as in the public evaluation: .3 in video 1, .5 in video 3.
    """
    dense = found("rouge", thresholds=(0.29, 0.3, 0.49, 0.5, 0.7, 0.9))
    third = 1 / 3
    video_1 = {
        0.29: (1 + 1 + third + third + 0) / 5,  # DOG twice, CAT with BIRD and with DOG, TREE with nothing
        0.3: (1 + 1 + third + 0) / 4,
        0.49: (1 + 1 + third + 0) / 4,
        0.5: (1 + 1 + third + 0) / 4,
        0.7: (1 + third + 0) / 3,
        0.9: 0.0,
    }
    video_3 = {0.29: 1.0, 0.3: 1.0, 0.49: 1.0}
    wanted = [(of_1 + 1 + video_3.get(threshold, 0.0)) / 3 for threshold, of_1 in video_1.items()]
    assert dense.captions["ROUGE_L"] == pytest.approx(wanted, abs=1e-9)
    assert dense.means()["ROUGE_L"] == pytest.approx(sum(wanted) / 6, abs=1e-9)
    # of three captions two meet a reference, in either file for the loosest; at .9 none
    assert dense.captions["Precision"] == pytest.approx(
        [(2 / 3 + 1 + 1) / 3] * 3 + [(2 / 3 + 1 + 0) / 3] * 2 + [1 / 3], abs=1e-9
    )
    assert dense.captions["Recall"] == pytest.approx([1] * 3 + [2 / 3] * 2 + [1 / 3], abs=1e-9)


def test_a_video_s_value_is_that_of_its_pairs_together(files: Path) -> None:
    """BLEU and METEOR of a video are those of a corpus of its pairs, as the public evaluation computes them."""
    dense = found("bleu,meteor,cider", thresholds=(0.3,))
    made = make_metrics(["bleu", "meteor", "cider"], Resources(lambda: None))
    pairs = [(DOG, DOG), (DOG, DOG), (CAT, BIRD), (TREE, "xyz")], [(BIRD, BIRD)], [(CAT, CAT)]
    for metric in made.values():
        by_video = []
        for of_video in pairs:
            corpus = Corpus(tuple(Item(n, text, (against,)) for n, (text, against) in enumerate(of_video)))
            alone = metric.weigh is not None and len(of_video) == 1  # nothing can be weighed: the scripts' 0
            by_video.append([0.0 if alone else s.value for s in metric.total(() if alone else metric.collect(corpus))])
        for name, values in zip([s.name for s in metric.total(())], zip(*by_video, strict=True), strict=True):
            assert dense.captions[name] == pytest.approx([np.mean(values)], abs=1e-9), name


@pytest.mark.model
@pytest.mark.parametrize("name", ["spice", "spice-g", "spider"])
def test_captions_that_meet_no_reference_score_nothing(files: Path, name: str) -> None:
    dense = found(name, thresholds=(0.9,))
    (value,) = (values[0] for key, values in dense.captions.items() if key not in {"Precision", "Recall"})
    one = 0 if name == "spider" else 1  # of one pair CIDEr weighs nothing
    assert value == pytest.approx(one / 3, abs=1e-9)  # video 2 alone has a reference
    assert [values["SODA_ROUGE_L"] for _, _, values in dense.videos][1] == pytest.approx(1)


def test_soda_by_hand(files: Path) -> None:
    """The best sum of overlap times score, over the captions, and over the references.

    Video 1, first file: DOG .8 x 1, CAT with BIRD .8 x 1/3; second file: DOG 10/16 x 1. Video 2: 1. Video 3, first file:
    0; second file: 5/10 x 1.
    """
    soda = found("rouge", order=SodaOrder.PAPER).soda["ROUGE_L"]
    best = {"1a": 0.8 + 0.8 / 3, "1b": 10 / 16, "2a": 1.0, "3a": 0.0, "3b": 0.5}
    sizes = {"1a": (3, 2), "1b": (3, 1), "2a": (1, 1), "3a": (1, 1), "3b": (1, 1)}
    precision = {key: best[key] / sizes[key][0] for key in best}
    recall = {key: best[key] / sizes[key][1] for key in best}
    f1 = {key: 2 * best[key] / sum(sizes[key]) for key in best}  # the harmonic mean of both
    assert f1["1a"] > f1["1b"]
    assert soda.precision == pytest.approx((precision["1a"] + 1 + 0.5) / 3, abs=1e-7)
    assert soda.recall == pytest.approx((recall["1a"] + 1 + 0.5) / 3, abs=1e-7)
    assert soda.f1 == pytest.approx((f1["1a"] + 1 + 0.5) / 3, abs=1e-7)
    of_files = (f1["1a"] + 1 + 0) / 3, (f1["1b"] + 0.5) / 2
    assert soda.mean_f1 == pytest.approx(sum(of_files) / 2, abs=1e-7)


def test_soda_s_script_takes_references_of_several_files_as_they_stand(files: Path) -> None:
    """Of video 1's first file BIRD stands before DOG: of the crossing matches only the better counts, .8 x 1."""
    script = found("rouge").soda["ROUGE_L"]
    assert script.recall == pytest.approx((0.8 / 2 + 1 + 0.5) / 3, abs=1e-7)
    sorted_first = {**FIRST, "v_1": {"timestamps": [[0, 8], [12, 20]], "sentences": [DOG, BIRD]}}
    (files / "val_1.json").write_text(json.dumps(sorted_first))
    assert found("rouge").soda["ROUGE_L"] == found("rouge", order=SodaOrder.PAPER).soda["ROUGE_L"]
    (files / "val_1.json").write_text(json.dumps(FIRST))
    rouge = make_metrics(["rouge"], Resources(lambda: None))
    alone = read_dense("results.json", ["val_1.json"])
    of_script, of_paper = (find_dense(alone, rouge, rouge, order=order).soda["ROUGE_L"] for order in SodaOrder)
    assert of_script == of_paper  # of a single file the script sorts them


def test_soda_scores_the_reference_against_the_caption_as_its_script_does(files: Path) -> None:
    short, long = "a dog runs", "a dog runs across the green field with a red ball"
    (files / "results.json").write_text(json.dumps({"results": {"v": [{"sentence": short, "timestamp": [0, 1]}]}}))
    for name in ("val_1.json", "val_2.json"):
        (files / name).write_text(json.dumps({"v": {"timestamps": [[0, 1]], "sentences": [long]}}))
    meteor = make_metrics(["meteor"], Resources(lambda: None))["meteor"]
    statistics = meteor.collect(Corpus((Item(1, short, (long,)), Item(2, long, (short,)))))
    paper, script = meteor.total(statistics)[0].each
    assert paper != script
    assert found("bleu", "meteor", order=SodaOrder.PAPER).soda["METEOR"].f1 == pytest.approx(paper, abs=1e-7)
    assert found("bleu", "meteor").soda["METEOR"].f1 == pytest.approx(script, abs=1e-7)


@given(st.integers(1, 4), st.integers(1, 4), st.data())
def test_the_best_order_is_the_best_of_all(rows: int, columns: int, data: st.DataObject) -> None:
    cells = data.draw(st.lists(st.floats(0, 1), min_size=rows * columns, max_size=rows * columns))
    values = np.array(cells).reshape(rows, columns)
    sums = [
        sum(values[r, c] for r, c in zip(chosen, places, strict=True))
        for size in range(1, min(rows, columns) + 1)
        for chosen in combinations(range(rows), size)
        for places in combinations(range(columns), size)
    ]
    assert best_in_order(values) == pytest.approx(max(sums), abs=1e-12)


def test_paragraphs_are_all_captions_of_a_video_as_one_text(files: Path) -> None:
    dense = found("rouge")
    rouge = make_metrics(["rouge"], Resources(lambda: None))["rouge"]
    items = (
        Item(1, f"{DOG}. {CAT}. {TREE}.", (f"{BIRD}. {DOG}.", f"{DOG}.")),
        Item(2, BIRD, (BIRD,)),
        Item(3, CAT, (CAT, CAT)),
    )
    assert dense.paragraphs["ROUGE_L"] == rouge.total(rouge.collect(Corpus(items)))[0].value
    assert found("rouge", paragraphs=False).paragraphs == {}


def test_a_missing_video_scores_zero_or_is_left_out(files: Path) -> None:
    del_ = {**RESULTS["results"]}
    del del_["v_2"]
    (files / "results.json").write_text(json.dumps({"results": {**del_, "v_9": []}}))
    paths = ["val_1.json", "val_2.json"]
    zero = read_dense("results.json", paths, missing=Missing.ZERO)
    assert (zero.videos, zero.captions[1].sentences, zero.left_out) == (("v_1", "v_2", "v_3"), (), 1)
    skip = read_dense("results.json", paths, missing=Missing.SKIP)
    assert (skip.videos, skip.left_out) == (("v_1", "v_3"), 2)
    rouge = make_metrics(["rouge"], Resources(lambda: None))
    of_zero, of_skip = (find_dense(corpus, rouge, rouge) for corpus in (zero, skip))
    for name, values in of_skip.captions.items():
        assert of_zero.captions[name] == pytest.approx([v * 2 / 3 for v in values if v is not None]), name
    assert of_zero.soda["ROUGE_L"] == of_skip.soda["ROUGE_L"]  # SODA's script scores the videos of both sides
    assert of_zero.videos[1][2]["SODA_ROUGE_L"] is None
    assert "left out of SODA" in of_zero.signature["missing videos"]
    assert "missing videos" not in of_skip.signature
    assert [count for _, count, _ in of_zero.videos] == [3, 0, 1]
    first = read_dense("results.json", paths, missing=Missing.SKIP, most=1)
    assert first.captions[0].sentences == (DOG,)


def test_every_fault_of_all_files_is_in_one_message(files: Path) -> None:
    wrong = {
        "v_1": [
            {"sentence": DOG, "timestamp": ["0", "10"]},
            {"sentence": CAT, "timestamp": [20, 10]},
            {"sentence": "", "timestamp": [-1, 10]},
            {"sentence": TREE, "timestamp": "0-10"},
            {"timestamp": [1, True]},
        ],
        "v_2": {"sentence": BIRD},
        "v_9": [],
    }
    (files / "results.json").write_text(json.dumps({"results": wrong}))
    (files / "val_2.json").write_text(json.dumps({"v_1": {"timestamps": [[0, 1]], "sentences": []}, "v_3": [1]}))
    with pytest.raises(InputError) as error:
        read_dense("results.json", ["val_1.json", "val_2.json"])
    assert str(error.value).splitlines() == [
        "results.json: 10 faults",
        "  video 'v_1', [0].timestamp: holds '0', expected a number of seconds",
        "  video 'v_1', [1].timestamp: ends at 10, before it starts at 20",
        "  video 'v_1', [2].timestamp: starts at -1, before the video",
        "  video 'v_1', [2].sentence: is empty",
        "  video 'v_1', [3].timestamp: is '0-10', expected [start, end] in seconds",
        "  video 'v_1', [4].timestamp: holds True, expected a number of seconds",
        "  video 'v_1', [4].sentence: is null, expected a string",
        '  video \'v_2\': expected a list of {"sentence", "timestamp": [start, end]}',
        "  video 'v_3': has references, but no captions",
        "  video 'v_9': has captions, but no references",
        "val_2.json: 2 faults",
        "  video 'v_1': has 1 timestamps and 0 sentences, expected as many of both, at least one",
        '  video \'v_3\': expected {"timestamps": [[start, end]], "sentences": [...]}',
        "--missing zero scores a missing video 0, and leaves it out of SODA, as the scripts do; skip: out of all",
    ]


def test_the_command_writes_tables_json_and_csv(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["dense", "results.json", "--references", "val_1.json", "--references", "val_2.json"]
    command += ["--metrics", "rouge", "--soda", "rouge"]
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert "5 captions of 3 videos." in shown
    assert "SODA by" in shown
    assert main([*command, "--format", "json", "--tiou", "0.5"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert set(values) == {"signature", "captions", "soda", "paragraphs", "videos"}
    assert values["captions"]["ROUGE_L"]["0.5"] == values["captions"]["ROUGE_L"]["mean"]
    assert values["signature"]["soda"] == "c, script"
    assert [video["video"] for video in values["videos"]] == ["v_1", "v_2", "v_3"]
    assert main([*command, "-o", "page.html"]) == 0
    assert "Captions by least overlap" in (files / "page.html").read_text("utf-8")
    assert main([*command, "--format", "csv", "--table", "videos", "--no-paragraphs", "--soda", "none"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "video,captions,ROUGE_L,Precision,Recall"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["results.json", "--references", "none.json"], "none.json: there is no such file"),
        (["results.json", "--references", "val_2.json"], "video 'v_2': has captions, but no references"),
        (["results.json", "--references", "val_1.json", "--soda", "cider"], "--soda: cider: depends on all pairs"),
        (
            ["results.json", "--references", "list.json"],
            "list.json: holds a list, expected an object with the captions",
        ),
        (["results.json", "--references", "other.json", "--missing", "skip"], "has no video of the references"),
    ],
)
def test_wrong_input_is_one_message(
    arguments: list[str], said: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "list.json").write_text("[]")
    (files / "other.json").write_text(json.dumps({"w": SECOND["v_1"]}))
    assert main(["dense", *arguments, "--metrics", "rouge"]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
