"""``python -m spicegraph_shim script.py ...``: run a script, or with ``-m`` a module, with the shim installed."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import spicegraph_shim

_USAGE = "usage: python -m spicegraph_shim (script.py | -m module) [argument ...]\n"
_BAD_COMMAND = 2


def main() -> None:
    """Run what the command line names, as Python itself would."""
    arguments = sys.argv[1:]
    if arguments[:1] in ([], ["-h"], ["--help"], ["-m"]) and len(arguments) < 2:
        (sys.stdout if arguments[:1] in (["-h"], ["--help"]) else sys.stderr).write(_USAGE)
        sys.exit(0 if arguments[:1] in (["-h"], ["--help"]) else _BAD_COMMAND)
    spicegraph_shim.install()
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        sys.path[0] = str(Path.cwd())
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    script = Path(arguments[0])
    if not script.is_file():
        sys.stderr.write(f"error: {script}: there is no such file\n")
        sys.exit(_BAD_COMMAND)
    sys.argv = arguments
    sys.path[0] = str(script.resolve().parent)
    runpy.run_path(str(script), run_name="__main__")


if __name__ == "__main__":
    main()
