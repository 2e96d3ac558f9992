"""Programs that import pycocoevalcap run on the shim: they, their children, and copies under other names."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from spicegraph_compat.shim import read_names
from spicegraph_compat.shim.record import report

if TYPE_CHECKING:
    from pathlib import Path

SCORERS = "spicegraph_compat.pycocoevalcap.scorers"
pytestmark = pytest.mark.slow  # nearly every test starts a program
JAVA = "#!/bin/sh\necho started >> {log}\nexit 1\n"


def run(folder: Path, *arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder, with a ``java`` first on the path that logs its start."""
    java = folder / "bin" / "java"
    java.parent.mkdir(exist_ok=True)
    java.write_text(JAVA.format(log=folder / "java.log"))
    java.chmod(0o755)
    path = f"{java.parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PATH": path} | (environment or {}),
    )


def shim(script: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(script)
    return run(folder, "-m", "spicegraph_compat.shim", *(arguments or ("script.py",)))


def starts_of_java(folder: Path) -> int:
    log = folder / "java.log"
    return len(log.read_text().splitlines()) if log.is_file() else 0


@pytest.mark.parametrize("before", [("script.py",), ("-m", "script")])
def test_an_unchanged_script_runs(before: tuple[str, ...], tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from pycocoevalcap.eval import COCOEvalCap, Bleu\n"
        "from pycocoevalcap.bleu.bleu import Bleu as Same\n"
        "from pyciderevalcap.ciderD.ciderD import CiderD\n"
        "from coco_caption.pycocoevalcap.cider.cider import Cider\n"
        "import pycocoevalcap.spice.spice as spice\n"
        "from pycocotools.coco import COCO\n"
        "try:\n    import pycocoevalcap.wmd\nexcept ModuleNotFoundError as error:\n    print(error)\n"
        "print(sys.argv[1:], __name__, Bleu is Same, COCO.__module__)\n"
        "print(Bleu.__module__, spice.Spice.__module__, CiderD(df='corpus').method(), str(Cider(df='corpus')))\n"
    )
    assert shim(script, *before, "a", "--b", folder=tmp_path).stdout.splitlines() == [
        "No module named 'pycocoevalcap.wmd'",
        "['a', '--b'] __main__ True pycocotools.coco",
        f"{SCORERS} {SCORERS} CIDEr-D CIDEr",
    ]


def test_pycocotools_is_answered_where_it_is_absent(tmp_path: Path) -> None:
    script = (
        "import importlib.machinery as machinery\n"
        "real = machinery.PathFinder.find_spec\n"
        "machinery.PathFinder.find_spec = lambda name, path=None, target=None: (\n"
        "    None if name.startswith('pycocotools') else real(name, path, target))\n"
        "from pycocotools.coco import COCO\n"
        "from coco_caption.pycocotools.coco import COCO as Same\n"
        "print(COCO.__module__, COCO is Same)\n"
    )
    assert shim(script, folder=tmp_path).stdout == "spicegraph_compat.pycocoevalcap.evaluation True\n"


CHILDREN = """
import multiprocessing, subprocess, sys

def tokenized(caption):
    from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer
    return PTBTokenizer.__module__, PTBTokenizer().tokenize({1: [caption]})

if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(pool.map(tokenized, ["A dog."]))
    line = "from pycocoevalcap.spice.spice import Spice; print(Spice.__module__)"
    subprocess.run([sys.executable, "-c", line], check=True)
"""


def test_child_processes_are_covered_however_they_start(tmp_path: Path) -> None:
    done = shim(CHILDREN, folder=tmp_path)
    assert sorted(done.stdout.splitlines()) == sorted([SCORERS, *[f"[('{SCORERS}', {{1: ['a dog']}})]"] * 3])
    assert done.stderr.splitlines() == [
        "spicegraph_compat.shim: replaced pycocoevalcap.spice.spice, pycocoevalcap.tokenizer.ptbtokenizer, in 4 processes",
        "spicegraph_compat.shim: Java would have started for PTBTokenizer",
    ]
    assert starts_of_java(tmp_path) == 0


LAUNCHER = '#!/bin/sh\nfor rank in 0 1; do RANK=$rank {python} -u "$@"; done\nexit 3\n'


@pytest.mark.parametrize("by_environment", [True, False])
def test_launchers_run_their_workers_on_the_shim(by_environment: bool, tmp_path: Path) -> None:
    """As torchrun and accelerate do: a command that starts one Python process per rank."""
    (tmp_path / "train.py").write_text("from pycocoevalcap.cider.cider import Cider\nprint(Cider.__module__)\n")
    launcher = tmp_path / "tools" / "launch"
    launcher.parent.mkdir()
    launcher.write_text(LAUNCHER.format(python=sys.executable))
    launcher.chmod(0o755)
    if by_environment:
        (tmp_path / "outer.py").write_text("import subprocess\nsubprocess.run(['tools/launch', 'train.py'])\n")
        done = run(tmp_path, "outer.py", environment={"SPICEGRAPH_SHIM": "1"})
    else:
        path = {"PATH": f"{launcher.parent}{os.pathsep}{os.environ['PATH']}"}
        done = run(tmp_path, "-m", "spicegraph_compat.shim", "launch", "train.py", environment=path)
        assert done.returncode == 3
    assert done.stdout.splitlines() == ["spicegraph_compat.pycocoevalcap.cider"] * 2
    assert done.stderr == "spicegraph_compat.shim: replaced pycocoevalcap.cider.cider, in 2 processes\n"


SCORER = """
class {name}:
    def __init__(self, *arguments): pass
    def compute_score(self, gts, res): return 0.0, [0.0 for _ in gts]
    def __str__(self): return "{name}"
"""
TOKENIZER = """
import subprocess
class PTBTokenizer:
    @classmethod
    def tokenize(cls, captions):
        subprocess.run(["java", "-cp", "tokenizer.jar"])
        return captions
"""
INIT = """
from .bleu.bleu import Bleu
from .tokenizer import PTBTokenizer
def compute_scores(gts, gen):
    gts, gen = PTBTokenizer.tokenize(gts), PTBTokenizer.tokenize(gen)
    return type(Bleu()).__module__, Bleu().compute_score(gts, gen)[0]
"""
USE = "from {name} import compute_scores\nprint(compute_scores({{1: ['A dog.']}}, {{1: ['A dog.']}}))\n"


def vendored(folder: Path, name: str) -> str:
    """Write a copy of the scorers under another name, as repositories have it; return a script that uses it."""
    package = folder.joinpath(*name.split("."))
    (package / "bleu").mkdir(parents=True)
    for parent in (package, *package.parents):
        if parent != folder and parent.is_relative_to(folder):
            (parent / "__init__.py").write_text("")
    (package / "__init__.py").write_text(INIT)
    (package / "bleu" / "bleu.py").write_text(SCORER.format(name="Bleu"))
    (package / "bleu" / "bleu_scorer.py").write_text("KEPT = True\n")
    (package / "tokenizer.py").write_text(TOKENIZER)
    return USE.format(name=name)


@pytest.mark.parametrize("name", ["evaluation", "datasets.caption.metrics"])
def test_a_copy_under_another_name_is_told_with_the_option_that_replaces_it(name: str, tmp_path: Path) -> None:
    script = vendored(tmp_path, name)
    before = shim(script, folder=tmp_path)
    assert before.stdout == f"('{name}.bleu.bleu', 0.0)\n"
    assert starts_of_java(tmp_path) == 2
    tokenizer = tmp_path.joinpath(*name.split("."), "tokenizer.py")
    assert before.stderr.splitlines() == [
        f"spicegraph_compat.shim: warning: Java was started by {tokenizer}:6",
        "spicegraph_compat.shim: warning: nothing was replaced",
        f"spicegraph_compat.shim: warning: {name} is a copy of pycocoevalcap and ran as it is",
        "spicegraph_compat.shim: warning: to replace it, run python -m spicegraph_compat.shim "
        f"--as {name}=pycocoevalcap ..., or set SPICEGRAPH_SHIM={name}=pycocoevalcap",
    ]
    option = f"{name}=pycocoevalcap"
    after = shim(f"{script}import {name}.bleu.bleu_scorer\n", "--as", option, "script.py", folder=tmp_path)
    assert after.stdout.startswith(f"('{SCORERS}', [0.999")
    assert after.stderr.splitlines() == [
        f"spicegraph_compat.shim: replaced {name}.bleu.bleu, {name}.tokenizer",
        "spicegraph_compat.shim: Java would have started for PTBTokenizer",
    ]
    assert starts_of_java(tmp_path) == 2


def test_the_eval_module_of_a_copy_stays(tmp_path: Path) -> None:
    """Copies differ most there: this one takes other arguments."""
    vendored(tmp_path, "metrics")
    own = "from metrics.bleu.bleu import Bleu\nclass COCOEvalCap:\n    def __init__(self, captions): pass\n"
    (tmp_path / "metrics" / "eval.py").write_text(own)
    script = "from metrics.eval import COCOEvalCap, Bleu\nprint(COCOEvalCap(1).__module__, Bleu.__module__)\n"
    done = shim(script, "-q", "--as", "metrics=pycocoevalcap", "script.py", folder=tmp_path)
    assert (done.stdout, done.stderr) == (f"metrics.eval {SCORERS}\n", "")


@pytest.mark.parametrize("empty_folder", [True, False])
def test_relative_imports_of_a_submodule_that_is_absent(empty_folder: bool, tmp_path: Path) -> None:
    package = tmp_path / "src" / "evalcap"
    package.mkdir(parents=True)
    if empty_folder:  # as after a clone without submodules
        (package / "coco_caption").mkdir()
    (package / "evaluate.py").write_text(
        "from .coco_caption.pycocotools.coco import COCO\n"
        "from .coco_caption.pycocoevalcap.eval import COCOEvalCap\n"
        "print(COCO.__module__, COCOEvalCap.__module__)\n"
    )
    done = shim("import src.evalcap.evaluate\n", folder=tmp_path)
    assert done.stdout == f"{' '.join(['spicegraph_compat.pycocoevalcap.evaluation'] * 2)}\n"
    assert done.stderr == "spicegraph_compat.shim: replaced src.evalcap.coco_caption.pycocoevalcap.eval\n"


def test_a_folder_with_a_part_of_pycocoevalcap_does_not_hide_meteors_data(tmp_path: Path) -> None:
    pytest.importorskip("snowballstemmer")
    (tmp_path / "pycocoevalcap" / "meteor").mkdir(parents=True)
    (tmp_path / "pycocoevalcap" / "__init__.py").write_text("")
    (tmp_path / "pycocoevalcap" / "helpers.py").write_text("NAME = 'helpers'\n")
    script = (
        "from pycocoevalcap.meteor.meteor import Meteor\n"
        "from pycocoevalcap.helpers import NAME\n"
        "print(NAME, Meteor().compute_score({1: ['a dog runs']}, {1: ['a dog runs']})[0])\n"
    )
    done = shim(script, folder=tmp_path)
    assert (done.stdout, done.returncode) == ("helpers 1.0\n", 0), done.stderr


def test_a_script_without_pycocoevalcap_is_warned(tmp_path: Path) -> None:
    done = shim("print(1)\n", folder=tmp_path)
    assert (done.stdout, done.returncode) == ("1\n", 0)
    assert done.stderr == (
        "spicegraph_compat.shim: warning: nothing was replaced: "
        "no process imported pycocoevalcap, pyciderevalcap or a copy of them\n"
    )


def test_processes_without_the_variable_do_not_load_the_shim(tmp_path: Path) -> None:
    done = run(tmp_path, "-c", "import sys; print('spicegraph_compat.shim' in sys.modules)")
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_a_shim_that_comes_too_late_says_so(tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text("import pycocoevalcap\nfrom spicegraph_compat import shim\nshim.install()\n")
    done = run(tmp_path, "late.py")
    assert "ImportError: pycocoevalcap: imported already; call spicegraph_compat.shim.install() before" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "usage: "),
        (("-m",), "usage: "),
        (("none.py",), "error: none.py: there is no such file, and no such command"),
        (("--as", "evaluation", "none.py"), "error: "),
        (("--as", "evaluation", "script.py"), "error: 'evaluation': expected NAME=pycocoevalcap"),
        (("--as", "a-b=pycocoevalcap", "script.py"), "error: a-b=pycocoevalcap: 'a-b' is not the name of a module"),
        (("--as", "a=numpy", "script.py"), "error: a=numpy: the target must be pycocoevalcap or pyciderevalcap"),
    ],
)
def test_command_lines_that_name_nothing(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("")
    done = run(tmp_path, "-m", "spicegraph_compat.shim", *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith(message)


def test_a_variable_that_cannot_be_read_stops_the_program(tmp_path: Path) -> None:
    """Going on would run the original program."""
    done = run(tmp_path, "-c", "print(1)", environment={"SPICEGRAPH_SHIM": "evaluation=numpy"})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: SPICEGRAPH_SHIM: evaluation=numpy: the target must be")


def test_report_of_several_processes() -> None:
    rows = [["replaced", "1", "pycocoevalcap"], ["replaced", "2", "pycocoevalcap.eval"], ["spared", "2", "SPICE"]]
    assert report(rows) == ["replaced pycocoevalcap.eval, in 2 processes", "Java would have started for SPICE"]
    assert report(rows, quiet=True) == []


def test_names_are_read() -> None:
    assert read_names(["a.b = pycocoevalcap", "c=pyciderevalcap.ciderD"]) == {
        "a.b": "pycocoevalcap",
        "c": "pyciderevalcap.ciderD",
    }
