"""lmms-eval and VLMEvalKit: what their aggregation functions call, without a Java process, and SPICE beside it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # there are no types for it in the lock

from spicegraph_compat.lmms_eval import spice, with_spice
from spicegraph_compat.pycocoevalcap import COCO, COCOEvalCap, PTBTokenizer
from spicegraph_scorer import Item, score

pytestmark = pytest.mark.model

ROOT = Path(__file__).parents[2]
COCO_EXAMPLE = ROOT / "examples" / "coco"
TASK = ROOT / "examples" / "lmms_eval"


@pytest.fixture(scope="module")
def results() -> list[dict[str, Any]]:
    """Stored predictions as lmms-eval's tasks hand them to aggregation."""
    rows = json.loads((COCO_EXAMPLE / "retrieval.json").read_text())[:12]
    references: dict[int, list[str]] = {row["image_id"]: [] for row in rows}
    for row in json.loads((COCO_EXAMPLE / "captions.json").read_text())["annotations"]:
        if row["image_id"] in references:
            references[row["image_id"]].append(row["caption"])
    return [
        {"answer": references[row["image_id"]], "pred": row["caption"], "image_id": row["image_id"]} for row in rows
    ]


def test_spice_is_that_of_the_toolkit_and_of_score(results: list[dict[str, Any]]) -> None:
    coco = COCO()
    coco.dataset = {
        "images": [{"id": row["image_id"]} for row in results],
        "annotations": [{"image_id": r["image_id"], "caption": text} for r in results for text in r["answer"]],
    }
    coco.createIndex()
    evaluation = COCOEvalCap(
        coco, coco.loadRes([{"image_id": row["image_id"], "caption": row["pred"]} for row in results])
    )
    evaluation.evaluate()
    value = spice(results, None)
    assert value == evaluation.eval["SPICE"]
    gts = PTBTokenizer.tokenize([row["answer"] for row in results])
    res = PTBTokenizer.tokenize([row["pred"] for row in results])
    items = [Item(place, res[place][0], tuple(gts[place])) for place in gts]
    assert score(items).corpus["SPICE"] == pytest.approx(value, abs=1e-12)
    assert 0.1 < value < 0.5


def test_an_answer_may_be_one_string_and_a_prediction_empty() -> None:
    rows = [{"answer": "A dog.", "pred": "a dog"}, {"answer": ["a cat"], "pred": ""}]
    assert spice(rows) == pytest.approx(0.5)


@pytest.fixture
def harness(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for lmms-eval's task functions, which the example task imports."""
    functions = ModuleType("lmms_eval.tasks.coco_cap.utils")
    for name in ("coco_cider", "coco_doc_to_text", "coco_doc_to_visual", "coco_meteor"):
        setattr(functions, name, print)
    functions.coco_process_result = lambda doc, result: {"coco_CIDEr": {"answer": doc, "pred": result[0]}}  # type: ignore[attr-defined]
    for name in ("lmms_eval", "lmms_eval.tasks", "lmms_eval.tasks.coco_cap"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, functions.__name__, functions)


@pytest.mark.usefixtures("harness")
def test_the_example_task_names_functions_that_exist() -> None:
    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        """Reads lmms-eval's ``!function utils.name`` as the name."""

    Loader.add_constructor("!function", lambda loader, node: ("function", loader.construct_scalar(node)))
    task = yaml.load((TASK / "coco2017_cap_val_spice.yaml").read_text(), Loader)
    namespace: dict[str, Any] = {}
    exec((TASK / "utils.py").read_text(), namespace)
    named = [task[key] for key in ("doc_to_visual", "doc_to_text", "process_results")]
    named += [metric["aggregation"] for metric in task["metric_list"]]
    for kind, name in named:
        assert kind == "function"
        assert callable(namespace[name.removeprefix("utils.")]), name
    found = namespace["process_result"](["a dog"], ["a cat"])
    assert list(found) == ["coco_CIDEr", "coco_SPICE"]
    assert {metric["metric"] for metric in task["metric_list"]} >= set(found)


def test_names_follow_the_task() -> None:
    process = with_spice(lambda doc, result: {"nocaps_Bleu_4": 1, "nocaps_CIDEr": result})
    assert process({}, ["a"]) == {"nocaps_Bleu_4": 1, "nocaps_CIDEr": ["a"], "nocaps_SPICE": ["a"]}


NO_PROCESS = """
import sys

def refuse(event, arguments):
    if event in {"subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "os.fork"}:
        raise SystemExit(f"a process was to start: {event} {arguments}")

sys.addaudithook(refuse)
"""
AGGREGATION = """
import json
from pycocoevalcap.eval import Bleu, Cider, COCOEvalCap, Meteor, Rouge, Spice
from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer
from pycocotools.coco import COCO

results = json.load(open("results.json"))
coco = COCO()
coco.dataset = {"annotations": [], "images": []}
for row in results:
    for answer in row["answer"]:
        number = len(coco.dataset["annotations"])
        coco.dataset["annotations"].append({"image_id": row["image_id"], "caption": answer, "id": number})
    coco.dataset["images"].append({"id": row["image_id"]})
coco.createIndex()
evaluation = COCOEvalCap(coco, coco.loadRes([{"image_id": r["image_id"], "caption": r["pred"]} for r in results]))
ids = evaluation.params["image_id"]
gts = PTBTokenizer().tokenize({i: evaluation.coco.imgToAnns[i] for i in ids})
res = PTBTokenizer().tokenize({i: evaluation.cocoRes.imgToAnns[i] for i in ids})
found = {}
for scorer in (Bleu(4), Meteor(), Rouge(), Cider(), Spice()):
    score, scores = scorer.compute_score(gts, res)
    found[scorer.method()] = score[3] if type(score) is list else float(score)
print(json.dumps(found))
"""


def test_an_aggregation_on_the_shim_starts_no_process(results: list[dict[str, Any]], tmp_path: Path) -> None:
    """The order of calls of lmms-eval's aggregation functions, with no program to be found and none allowed."""
    (tmp_path / "results.json").write_text(json.dumps(results))
    (tmp_path / "task.py").write_text(NO_PROCESS + AGGREGATION)
    command = [sys.executable, "-m", "spicegraph_compat.shim", "task.py"]
    environment = {**os.environ, "PATH": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert list(found) == ["Bleu", "METEOR", "Rouge", "CIDEr", "SPICE"]
    assert found["SPICE"] == spice(results)
    assert all(value > 0.1 for value in found.values())


def test_the_runner_of_real_scripts_gives_their_values(tmp_path: Path) -> None:
    script = (
        "import torch\n"  # a stand-in where it is not installed
        "from pycocoevalcap.eval import COCOEvalCap\n"
        "from pycocotools.coco import COCO\n"
        "coco = COCO('captions_val2014.json')\n"
        "coco_eval = COCOEvalCap(coco, coco.loadRes('captions_val2014_fakecap_results.json'))\n"
        "coco_eval.evaluate()\n"
    )
    (tmp_path / "coco_eval_example.py").write_text(script)
    command = [sys.executable, str(ROOT / "tools" / "run_third_party.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    values = json.loads(done.stdout)["coco_eval_example.py"]
    assert values["CIDEr"] > 1
    assert 0.1 < values["SPICE"] < 0.5


def test_the_runner_stops_when_java_is_to_start(tmp_path: Path) -> None:
    (tmp_path / "coco_eval_example.py").write_text("import subprocess\nsubprocess.Popen(['java', '-version'])\n")
    command = [sys.executable, str(ROOT / "tools" / "run_third_party.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "a Java process was to start" in done.stderr
