"""Check the types of every Python block of the documentation, with the settings and the cache of mypy's run."""

from __future__ import annotations

import shutil
import subprocess
import sys

from markdown_blocks import ROOT, WITH_BLOCKS, join_python_programs

FOLDER = ROOT / "build" / "blocks"


def main() -> int:
    """Write the programs to a folder, and run mypy on them; return its exit status."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    for page in WITH_BLOCKS:
        name = page.relative_to(ROOT).as_posix().removesuffix(".md").replace("/", "_").replace("-", "_")
        for number, text in enumerate(join_python_programs(page.read_text("utf-8"))):
            (FOLDER / f"{name}_{number}.py").write_text(text, encoding="utf-8")
    files = sorted(map(str, FOLDER.glob("*.py")))
    if not files:
        print("no page has a Python block: tools/markdown_blocks.py looks in the wrong place", file=sys.stderr)
        return 1
    return subprocess.run([sys.executable, "-m", "mypy", *files], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
