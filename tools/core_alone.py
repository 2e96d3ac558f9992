"""Run tests against a built wheel from which wings are removed: nothing that is left may need them.

    python tools/core_alone.py [--without WING]... [PYTEST-ARGUMENTS...]

Without ``--without``, every wing is removed and the tests of the core run; with it, the tests of the core and of the
other wings.

The wheel is built and unpacked into an environment in ``build/core-alone`` that sees this one's packages, but not its
editable installation.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "build" / "core-alone"
WINGS = tuple(sorted(path.name for path in (ROOT / "wings").glob("spicegraph_*")))
CORE_TESTS = tuple(f"tests/{part}" for part in ("parser", "scorer", "service"))
SOURCES = tuple(str(ROOT / part) for part in ("proto", "parser", "scorer", "service", "wings"))


def main(arguments: list[str]) -> int:
    """Build, unpack without the wings, and run the tests; return pytest's exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--without", action="append", metavar="WING", choices=WINGS, default=[])
    options, pytest_arguments = parser.parse_known_args(arguments)
    removed = tuple(options.without) or WINGS
    kept = [f"tests/{wing.removeprefix('spicegraph_')}" for wing in WINGS if wing not in removed]
    tests = [*CORE_TESTS, *(folder for folder in kept if (ROOT / folder).is_dir())]
    has_tests = any(argument.startswith("tests") for argument in pytest_arguments)
    shutil.rmtree(FOLDER, ignore_errors=True)
    options = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--wheel-dir", FOLDER)
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, ROOT], check=True)
    (wheel,) = FOLDER.glob("spicegraph-*.whl")
    venv.create(FOLDER / "venv", with_pip=False, symlinks=True)
    (packages,) = (FOLDER / "venv" / "lib").glob("python*/site-packages")
    unpack(wheel, packages, removed)
    others = [path for path in sys.path if path.endswith("site-packages") and path not in SOURCES]
    (packages / "environment.pth").write_text("\n".join(others) + "\n", encoding="utf-8")
    python = FOLDER / "venv" / "bin" / "python"
    programs = os.pathsep.join([str(python.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    probe = f"import importlib.util as u, sys; sys.exit(any(map(u.find_spec, {removed})))"
    subprocess.run([python, "-c", probe], check=True, cwd=FOLDER)
    return subprocess.run(
        [python, "-m", "pytest", "-p", "no:cacheprovider", *pytest_arguments, *([] if has_tests else tests)],
        cwd=ROOT, env=os.environ | {"PATH": programs}, check=False,
    ).returncode  # fmt: skip


def unpack(wheel: Path, packages: Path, removed: tuple[str, ...]) -> None:
    """Unpack a wheel into a folder of packages, without some wings and the entry points that name them."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages, [name for name in archive.namelist() if not name.startswith(removed)])
    (entry_points,) = packages.glob("spicegraph-*.dist-info/entry_points.txt")
    lines = entry_points.read_text("utf-8").splitlines(keepends=True)
    entry_points.write_text("".join(line for line in lines if not any(wing in line for wing in removed)), "utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
