"""Choose the tests of a change: print the tests, and the parts of the full run, that the changed files concern.

    python tools/lanes.py [--since COMMIT]      arguments for pytest
    python tools/lanes.py [--since COMMIT] --hosts   exit status 0 where the hosts' environment is concerned, else 1

Without ``--since`` the changes are those since the merge base with ``origin/main``; on ``main`` itself every test of
`make test` runs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

# Whatever one of these changes, every test of `make test` runs.
EVERYTHING = (
    "parser/",
    "scorer/",
    "service/",
    "proto/",
    "requirements/",
    "pyproject.toml",
    "Makefile",
    ".ci/",
    "tools/",
    "tests/conftest.py",
    "tests/support/",
    "tests/golden/",
    "tests/cases/",
    "tests/parser/",
    "tests/scorer/",
    "tests/service/",
)
# Folders outside of the packages whose tests stand in tests/e2e.
END_TO_END = ("tests/e2e/", "examples/", "deploy/")

PARTS: dict[str, tuple[str, ...]] = {
    "clients": ("proto/", "examples/clients/", "tests/e2e/test_grpc_clients.py"),
    "floods": ("service/spicegraph_service/rpc/", "service/spicegraph_service/app.py", "bench/strangers.py", "deploy/"),
    "packaging": ("pyproject.toml", "requirements/", "parser/en_caption.py", "tests/e2e/test_packaging.py"),
    "pages": (
        "docs/",
        "examples/",
        "README.md",
        "mkdocs.yml",
        "service/spicegraph_service/cli/",
        "tests/e2e/test_docs.py",
    ),
    "ray": ("wings/spicegraph_scale/", "tests/scale/", "requirements/"),
}
"""Parts of the full run (``pytest --full PART``), by the beginnings of the paths that concern each."""

HOSTS = ("examples/hosts/", "tests/hosts/", "requirements/hosts.txt", "wings/spicegraph_compat/")
"""Beginnings of the paths that concern the tests of host tools, which have an environment of their own."""


def choose_tests(changed: list[str]) -> list[str]:
    """Return the files and folders of tests that changed files concern; an unknown folder concerns all."""
    wings = {path.name.removeprefix("spicegraph_"): path for path in ROOT.glob("wings/spicegraph_*")}
    chosen = {"repository": sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("tests/test_*.py"))}
    for path in changed:
        if path.startswith(EVERYTHING):
            return ["tests"]
        if path.startswith(END_TO_END):
            chosen["e2e"] = ["tests/e2e"]
        top, _, rest = path.partition("/")
        wing = rest.partition("/")[0].removeprefix("spicegraph_") if top in {"wings", "tests"} else ""
        if wing in wings:
            chosen[wing] = [f"tests/{wing}"]
    return [test for tests in chosen.values() for test in tests]


def choose_parts(changed: list[str]) -> list[str]:
    """Return the parts of the full run that changed files concern, in order."""
    return sorted(part for part, starts in PARTS.items() if any(path.startswith(starts) for path in changed))


def changed_files(since: str | None) -> list[str] | None:
    """Return the paths that differ from a commit, by default the merge base; ``None`` on ``main`` itself."""
    base = since or _git("merge-base", "HEAD", "origin/main", check=False).strip()
    if not base or base == _git("rev-parse", "HEAD").strip():
        return None
    return _git("diff", "--name-only", "--no-renames", base, "HEAD").splitlines()


def _git(*arguments: str, check: bool = True) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=check, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""


def main(arguments: list[str] | None = None) -> int:
    """Print pytest's arguments, or answer whether the hosts' tests are concerned by the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--since", metavar="COMMIT", help="compare with this commit")
    parser.add_argument("--hosts", action="store_true", help="only tell by the exit status whether hosts' tests run")
    options = parser.parse_args(arguments)
    changed = changed_files(options.since)
    if options.hosts:
        return int(not any(path.startswith(HOSTS) for path in changed or ()))
    if changed is None:
        print("tests")
        return 0
    parts = choose_parts(changed)
    print(*choose_tests(changed), *([f"--full={','.join(parts)}"] if parts else []))
    return 0


if __name__ == "__main__":
    sys.exit(main())
