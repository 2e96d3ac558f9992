"""The wheel as people install it: small, typed, reproducible, and at work in an empty environment without a network."""

from __future__ import annotations

import csv
import email
import email.policy
import hashlib
import importlib.metadata
import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.slow, pytest.mark.full("packaging")]

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "spicegraph",
    "spicegraph_api",
    "spicegraph_challenge",
    "spicegraph_graded",
    "spicegraph_compat",
    "spicegraph_scale",
    "spicegraph_languages",
    "spicegraph_scenes",
    "spicegraph_web",
    "spicegraph_parser",
    "spicegraph_scorer",
    "spicegraph_service",
    "spicegraph_studies",
)
LARGEST_MB = 23  # the caption pipeline has 9.7, the scene parser 5.6, WordNet and METEOR's tables the rest
MADE_AT = "1700000000"

# Run before everything else in the new environment: no socket leads anywhere.
NO_NETWORK = """
import socket
class _Refused(socket.socket):
    def connect(self, address):
        raise OSError(f"no network here: {address}")
    connect_ex = connect
socket.socket = _Refused
"""


def build(tree: Path, folder: Path) -> dict[str, Path]:
    """Build sdist and wheel (the wheel out of the sdist), and return them by their ending."""
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(tree)],
        check=True,
        capture_output=True,
        env=os.environ | {"SOURCE_DATE_EPOCH": MADE_AT},
    )
    return {path.suffix: path for path in folder.iterdir()}


def copy(source: Path, target: Path) -> Path:
    """Copy what the package is built from to another folder."""
    target.mkdir(parents=True)
    for name in ("parser", "proto", "scorer", "service", "wings"):
        shutil.copytree(source / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in (".gitignore", "CHANGELOG.md", "LICENSE", "NOTICE", "README.md", "pyproject.toml"):
        shutil.copy2(source / name, target / name)
    return target


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy(ROOT, tmp_path_factory.mktemp("tree") / "one")


@pytest.fixture(scope="module")
def built(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return build(tree, tmp_path_factory.mktemp("first"))


@pytest.fixture(scope="module")
def python(built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel; its dependencies are those of this one, the editable install is not."""
    folder = tmp_path_factory.mktemp("env")
    venv.create(folder, with_pip=False)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    (site / "a_no_network.pth").write_text("import no_network\n")
    (site / "no_network.py").write_text(NO_NETWORK)
    interpreter = folder / "bin" / "python"
    options = ["--quiet", "--no-index", "--no-deps", "--no-compile"]
    install = [sys.executable, "-m", "pip", "--python", str(interpreter), "install", *options, str(built[".whl"])]
    subprocess.run(install, check=True, capture_output=True)
    (site / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return interpreter


def test_build_is_reproducible_in_another_folder(tree: Path, built: dict[str, Path], tmp_path: Path) -> None:
    other = copy(tree, tmp_path / "another" / "place")
    for path in other.rglob("*"):
        os.utime(path, (1, 1))
    again = build(other, tmp_path / "dist")
    for ending in (".whl", ".gz"):
        digests = {hashlib.sha256(files[ending].read_bytes()).hexdigest() for files in (built, again)}
        assert len(digests) == 1, ending


def test_the_wheel_holds_what_it_must_and_nothing_else(tree: Path, built: dict[str, Path]) -> None:
    assert built[".whl"].stat().st_size <= LARGEST_MB * 1_000_000
    with zipfile.ZipFile(built[".whl"]) as wheel:
        names = wheel.namelist()
    # The start-up hook of child processes, and the name under which spaCy finds the bundled pipeline.
    beside = {"spicegraph_compat.pth", "en_caption.py", "en_caption.egg-info/PKG-INFO"}
    folders = {name.partition("/")[0] for name in {*PACKAGES, *beside, "spicegraph-0.1.0.dist-info"}}
    assert {name.partition("/")[0] for name in names} == folders
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(names)
    assert not [name for name in names if name.endswith((".pyc", ".orig", ".rej"))]
    code = {
        f"{package}/{path.relative_to(folder).as_posix()}"
        for package, folder in sources(tree)
        for path in files(folder)
    } - {"spicegraph_compat/shim/start.pth"}  # the wheel has it beside the packages, as spicegraph_compat.pth
    assert code == {name for name in names if ".dist-info/" not in name and name not in beside}


def sources(tree: Path) -> list[tuple[str, Path]]:
    return [(path.name, path) for path in (folder / name for folder in tree.iterdir() for name in PACKAGES) if path.is_dir()]  # fmt: skip


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]


def test_the_long_description_leads_nowhere_that_an_index_does_not_have(built: dict[str, Path]) -> None:
    with zipfile.ZipFile(built[".whl"]) as wheel:
        metadata = email.message_from_bytes(
            wheel.read("spicegraph-0.1.0.dist-info/METADATA"), policy=email.policy.default
        )
    text = metadata.get_payload()
    assert isinstance(text, str)
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert "spicegraph score" in text
    links = re.findall(r"\]\(([^)]*)\)|\b(?:src|href)=\"([^\"]*)\"", text)
    assert [link for pair in links for link in pair if link and not link.startswith(("https://", "#"))] == []
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        compile(code, "the long description", "exec")


def test_the_source_distribution_holds_all_that_the_wheel_is_built_from(built: dict[str, Path]) -> None:
    with tarfile.open(built[".gz"]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "NOTICE", "CHANGELOG.md"} <= names
    assert "parser/spicegraph_parser/spice/rules.py" in names


def test_extras_are_named_and_python_is_new_enough() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(project["optional-dependencies"]) == {
        "fast",
        "web",
        "redis",
        "postgres",
        "otel",
        "parquet",
        "zstd",
        "ray",
    }
    assert project["requires-python"] == ">=3.11"
    assert {"spicegraph", "spicegraph-spice"} <= set(project["scripts"])


@pytest.fixture
def run(python: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a program of the new environment, in a folder of its own and without this one's paths."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SPICEGRAPH"))}

    def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(python.parent / program), *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=clean, check=False)

    return run


@pytest.mark.model
def test_the_wheel_scores_without_a_network(
    run: Callable[..., subprocess.CompletedProcess[str]], python: Path, tmp_path: Path
) -> None:
    where = run("python", "-c", "import spicegraph_service, sys; print(spicegraph_service.__file__, sys.prefix)")
    file, prefix = where.stdout.split()
    assert Path(prefix) == python.parent.parent
    assert file.startswith(prefix), "the wheel itself, not the checkout"
    refused = run("python", "-c", "import socket; socket.create_connection(('127.0.0.1', 9))")
    assert "no network here" in refused.stderr
    (tmp_path / "my.csv").write_text("id,candidate,reference\n1,a dog runs,a dog is running\n2,a cat,a cat sleeps\n")
    done = run("spicegraph", "score", "my.csv", "--metrics", "spice,bleu,rouge,cider", "--format", "csv")
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["image_id"] for row in rows] == ["1", "2"]
    assert all(float(row["SPICE"]) > 0 for row in rows)


@pytest.mark.model
def test_spacy_finds_the_wheels_pipeline_by_name(
    run: Callable[..., subprocess.CompletedProcess[str]], python: Path
) -> None:
    code = (
        "import spacy; nlp = spacy.load('en_caption'); print(nlp.path, [t.lemma_ for t in nlp('Dogs ran')], sep='\\n')"
    )
    done = run("python", "-c", code)
    folder, lemmas = done.stdout.splitlines()
    assert lemmas == "['dog', 'run']", done.stderr
    assert Path(folder).is_relative_to(python.parent.parent), "the wheel itself, not the checkout"


@pytest.mark.model
def test_the_wheel_covers_child_processes_of_the_shim(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    child = "from pycocoevalcap.bleu.bleu import Bleu; print(Bleu.__module__)"
    (tmp_path / "parent.py").write_text(f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}])\n")
    done = run("python", "-m", "spicegraph_compat.shim", "parent.py")
    assert done.stdout == "spicegraph_compat.pycocoevalcap.scorers\n", done.stderr


@pytest.mark.model
def test_the_wheels_other_programs_start(run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text('[{"image_id": 1, "test": "a dog", "refs": ["a dog"]}]')
    assert "f-score:\t1.000" in run("spicegraph-spice", "in.json", "-threads", "1").stdout
    assert run("spicegraph", "report", "in.json", "-o", "r.html").returncode == 0
    assert "<!DOCTYPE html>" in (tmp_path / "r.html").read_text()
    assert run("spicegraph", "--version").stdout == "spicegraph 0.1.0\n"


def pinned(name: str) -> dict[str, str]:
    """Return the packages of a file of requirements with their versions; where there are two, the last."""
    text = (ROOT / "requirements" / name).read_text()
    return dict(re.findall(r"^([\w.-]+)==([^\s;\\]+)", text, re.MULTILINE))


def test_the_plain_installation_is_the_whole_product() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    named = {re.split(r"[^\w-]", requirement)[0] for requirement in project["project"]["dependencies"]}
    assert {"spacy", "nltk", "networkx", "grpcio", "protobuf", "numpy", "pycocoevalcap"} <= named
    lean = {re.split(r"[^\w-]", requirement)[0] for requirement in project["dependency-groups"]["lean"]}
    assert lean < named
    assert lean <= set(pinned("lean.txt"))
    assert pinned("lean.txt").items() <= pinned("runtime.txt").items(), "both install the same versions"
    assert not {"spacy", "nltk", "networkx", "grpcio", "pycocoevalcap", "sqlalchemy"} & set(pinned("lean.txt"))


LEAN = """
import importlib.abc, sys
class _Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, _Absent())
"""


@pytest.fixture
def lean(python: Path) -> Iterator[Path]:
    """The environment without what ``requirements/lean.txt`` leaves out."""
    absent = set(pinned("runtime.txt")) - set(pinned("lean.txt"))
    names = {
        name
        for name, owners in importlib.metadata.packages_distributions().items()
        if {owner.lower().replace("_", "-") for owner in owners} <= absent
    }
    assert {"spacy", "nltk", "networkx", "grpc", "sqlalchemy", "pycocoevalcap"} <= names
    (site,) = (python.parent.parent / "lib").glob("python*/site-packages")
    hook = site / "b_lean.pth"
    hook.write_text("import lean_installation\n")
    (site / "lean_installation.py").write_text(LEAN.format(names=names | {"google.protobuf", "google.rpc"}))
    yield python
    hook.unlink()


@pytest.mark.model
def test_a_lean_installation_scores_and_reports_and_says_what_it_lacks(
    lean: Path, run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    assert lean.exists()
    (tmp_path / "my.csv").write_text("id,candidate,reference\n1,a dog runs,a dog is running\n2,a cat,a cat sleeps\n")
    scored = run("spicegraph", "score", "my.csv", "--metrics", "spice,spice-g,bleu,rouge,cider", "--format", "json")
    assert scored.returncode == 0, scored.stderr
    assert run("spicegraph", "report", "my.csv", "-o", "r.html").returncode == 0
    program = "import spicegraph; print(spicegraph.parse('A brown dog.').tuples, spicegraph.score_captions(['a dog'], [['a dog']]).corpus['SPICE'])"  # fmt: skip
    assert run("python", "-c", program).stdout == "(('dog', 'brown'), ('dog',)) 1.0\n"
    for arguments, package in (
        (("score", "my.csv", "--metrics", "meteor"), "METEOR needs"),
        (("parse", "--text", "a dog", "--pipeline", "en_core_web_sm"), "spacy"),
        (("parse", "--text", "a dog", "--format", "graphml"), "networkx"),
        (("serve",), "grpc"),
        (("challenge", "list"), "is not installed"),
    ):
        refused = run("spicegraph", *arguments)
        assert refused.returncode == 2, refused.stderr
        assert package in refused.stderr
        assert refused.stderr.rstrip().endswith("pip install spicegraph"), refused.stderr
        assert "Traceback" not in refused.stderr
