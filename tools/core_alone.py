"""Run the tests of the core against a built wheel from which the wings are removed: nothing of the core may need them.

    python tools/core_alone.py [PYTEST-ARGUMENTS...]

The wheel is built and unpacked into an environment in ``build/core-alone`` that sees this one's packages, but not its
editable installation.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "build" / "core-alone"
WINGS = (
    "spicegraph_studies",
    "spicegraph_challenge",
    "spicegraph_detail",
    "spicegraph_rewards",
    "spicegraph_viewer",
    "spicegraph_platforms",
    "spicegraph_ray",
    "spicegraph_scenes",
)
TESTS = tuple(f"tests/{part}" for part in ("parser", "scorer", "service"))
SOURCES = tuple(str(ROOT / part) for part in ("proto", "parser", "scorer", "service", "wings"))


def main(arguments: list[str]) -> int:
    """Build, unpack without the wings, and run the tests; return pytest's exit code."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    options = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--wheel-dir", FOLDER)
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, ROOT], check=True)
    (wheel,) = FOLDER.glob("spicegraph-*.whl")
    venv.create(FOLDER / "venv", with_pip=False, symlinks=True)
    (packages,) = (FOLDER / "venv" / "lib").glob("python*/site-packages")
    unpack(wheel, packages)
    others = [path for path in sys.path if path.endswith("site-packages") and path not in SOURCES]
    (packages / "environment.pth").write_text("\n".join(others) + "\n", encoding="utf-8")
    python = FOLDER / "venv" / "bin" / "python"
    programs = os.pathsep.join([str(python.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    probe = f"import importlib.util as u, sys; sys.exit(any(map(u.find_spec, {WINGS})))"
    subprocess.run([python, "-c", probe], check=True, cwd=FOLDER)
    return subprocess.run(
        [python, "-m", "pytest", "-p", "no:cacheprovider", *(arguments or TESTS)],
        cwd=ROOT, env=os.environ | {"PATH": programs}, check=False,
    ).returncode  # fmt: skip


def unpack(wheel: Path, packages: Path) -> None:
    """Unpack a wheel into a folder of packages, without the wings and the entry points that name them."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages, [name for name in archive.namelist() if not name.startswith(WINGS)])
    (entry_points,) = packages.glob("spicegraph-*.dist-info/entry_points.txt")
    lines = entry_points.read_text("utf-8").splitlines(keepends=True)
    entry_points.write_text("".join(line for line in lines if not any(wing in line for wing in WINGS)), "utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
