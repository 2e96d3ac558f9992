"""Build what is published, ``dist/*.whl`` and ``dist/*.tar.gz``, where all papers name the same version.

    python tools/release.py [--tag v0.1.0]

With ``--tag`` (or in a workflow that a tag started) the version is the tag's, and the changelog must have its date.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def faults(root: Path, tag: str | None) -> list[str]:
    """Return what keeps the version of ``pyproject.toml`` from being released under a tag; without one, as it is."""
    version = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    cited = re.search(r"^version: *(\S+)$", (root / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    logged = re.search(r"^## \[([^\]]+)\] - (.+)$", (root / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    found = []
    if cited is None or cited[1] != version:
        found.append(f"CITATION.cff: version is {cited and cited[1]}, pyproject.toml has {version}")
    if logged is None or logged[1] != version:
        found.append(f"CHANGELOG.md: its first section is {logged and logged[1]}, pyproject.toml has {version}")
    if tag is not None and tag != f"v{version}":
        found.append(f"the tag is {tag}, pyproject.toml has {version}")
    if tag is not None and logged is not None and not re.fullmatch(r"\d{4}-\d{2}-\d{2}", logged[2]):
        found.append(f"CHANGELOG.md: {logged[1]} has no date but {logged[2]!r}")
    return found


def main(arguments: list[str]) -> int:
    """Check, then build; return 0, or 2 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    started_by = os.environ.get("GITHUB_REF_NAME") if os.environ.get("GITHUB_REF_TYPE") == "tag" else None
    parser.add_argument("--tag", default=started_by, help="the tag that is released")
    wrong = faults(ROOT, parser.parse_args(arguments).tag)
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 2
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    subprocess.run([sys.executable, "-m", "build", "--no-isolation", "--outdir", "dist", "."], cwd=ROOT, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
