"""What a command loads: a short one waits for its imports alone, so that each loads no more than it uses."""

from __future__ import annotations

import ast
import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import spicegraph_scorer
from spicegraph_scorer import METRICS
from spicegraph_scorer.core.metric import Metric

LIBRARY = "from spicegraph_scorer import Item, score; score([Item(1, 'a dog', ('a dog',))], ['rouge'])"
SERVER = {"google.protobuf", "grpc", "jinja2", "sqlalchemy"}
METRIC_MODULES = {f"spicegraph_scorer.metrics.{name}" for name in ("chair", "graded", "meteor")} | {
    "spicegraph_graded.detail.capture",
    "spicegraph_graded.fluency",
}
PARSING = {"spicegraph_parser.caption_pipeline.network", "spicegraph_scenes.parser", "networkx", "ray", "spacy"}
STUDIES = {
    "spicegraph_scorer.errors",
    "spicegraph_studies.agreement",
    "spicegraph_studies.bounds",
    "spicegraph_challenge.model",
    "concurrent.futures.process",
    "spicegraph_scale.engine",
    "spicegraph_service.report",
    "spicegraph_service.rpc",
    "spicegraph_service.pool",
}
UNUSED = {
    "--help": SERVER
    | PARSING
    | {"msgspec", "numpy", "rich", "spicegraph_parser.spice.extraction", "spicegraph_scorer"},
    "score {}": SERVER | METRIC_MODULES | STUDIES | {"scipy", "spacy", "spicegraph_scenes.parser"},
    "score {} --metrics bleu,rouge,cider": SERVER
    | METRIC_MODULES
    | PARSING
    | STUDIES
    | {"spicegraph_scorer.metrics.spice"},
    "score a={0} b={0} --metrics bleu": SERVER | METRIC_MODULES | PARSING | STUDIES,
    "compare {0} {0} --metrics bleu": SERVER | METRIC_MODULES | PARSING | STUDIES,
    "parse {1} --format jsonl": SERVER | METRIC_MODULES | STUDIES | {"scipy", "spacy", "spicegraph_scenes.parser"},
    "from spicegraph_scorer import score": {"scipy", "spicegraph_service"},
    LIBRARY: METRIC_MODULES | PARSING | STUDIES | {"scipy", "spicegraph_scorer.metrics.spice", "spicegraph_service"},
}
"""Commands, and a program that uses the library, with what they must not load."""


@pytest.mark.slow
@pytest.mark.parametrize("command", UNUSED)
def test_what_a_command_does_not_use_is_not_loaded(command: str, tmp_path: Path) -> None:
    items = tmp_path / "items.jsonl"
    rows = [{"id": n, "candidate": "a dog runs", "references": ["a dog", "a cat"]} for n in range(3)]
    items.write_text("".join(json.dumps(row) + "\n" for row in rows))
    captions = tmp_path / "captions.txt"
    captions.write_text("a dog runs\n")
    arguments = command.format(items, captions).split()
    program = (
        command
        if command.startswith("from")
        else f"from spicegraph_service.cli import main; assert not main({arguments})"
    )
    program += "; import json, sys; sys.stderr.write('\\n' + json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert UNUSED[command].isdisjoint(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("name", ["core", "metrics", "readers", "scoring"])
def test_modules_are_there_after_the_import_of_the_library(name: str) -> None:
    program = f"import spicegraph_scorer; assert spicegraph_scorer.{name}.__name__ == 'spicegraph_scorer.{name}'"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_s_class_is_where_the_table_says(name: str) -> None:
    """What makes it, others test."""
    assert issubclass(METRICS[name].kind, Metric)


def test_the_library_s_names_are_those_that_type_checkers_see() -> None:
    tree = ast.parse(Path(spicegraph_scorer.__file__).with_suffix(".pyi").read_text())
    shown = {
        alias.name: str(node.module)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    names = spicegraph_scorer.__all__  # type: ignore[attr-defined]  # the stub says it by its imports
    assert set(names) == shown.keys() <= set(dir(spicegraph_scorer))
    assert {module.name for module in pkgutil.iter_modules(spicegraph_scorer.__path__)}.isdisjoint(names)
    for name, module in shown.items():
        assert getattr(spicegraph_scorer, name) is getattr(sys.modules[module], name)
    assert "__getattr__" not in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, (
        "checkers see it"
    )
    with pytest.raises(AttributeError, match="no attribute 'scores'"):
        spicegraph_scorer.scores  # noqa: B018


WARM = """
import sys
from spicegraph_parser.pipelines import load_pipeline
from spicegraph_service.pool.evaluate import Evaluator
from spicegraph_service.pool.tasks import ItemsWork, ItemWork, RequestData, Work

opened = []
evaluator = Evaluator(load_pipeline())
evaluator.make_ready()
evaluator.warm_up()
sys.addaudithook(lambda event, values: opened.append(values[0]) if event == "open" else None)
item = ItemWork("1", "two dogs play on a sofa", ("a cat sleeps",))
for style in evaluator._pipelines:
    group = ItemsWork(("spice",), 0, (item,), finish=True, given=RequestData(graph_style=style))
    assert not evaluator.run(Work((group,), {})).groups[0].error
print(opened)
"""


@pytest.mark.slow
def test_the_first_call_of_a_worker_reads_no_file() -> None:
    """It would take fifteen times as long as the next one."""
    done = subprocess.run([sys.executable, "-c", WARM], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
