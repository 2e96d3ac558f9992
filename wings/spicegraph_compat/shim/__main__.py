"""``python -m spicegraph_compat.shim script.py ...``: run a program with the shim installed."""

from __future__ import annotations

import runpy
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from spicegraph_compat import shim

_USAGE = """\
usage: python -m spicegraph_compat.shim [-q] [--as NAME=pycocoevalcap]... (script.py | -m module | command) ARGUMENTS

Runs a program that imports pycocoevalcap or pyciderevalcap, and the processes that it starts, on spicegraph: no Java.

  --as NAME=TARGET  NAME is a copy of TARGET (pycocoevalcap, pyciderevalcap or a module of them); repeatable
  -q, --quiet       at the end, say nothing but warnings
  command           such as torchrun or accelerate; SPICEGRAPH_SHIM=1 in the environment does the same
"""
_BAD_COMMAND = 2


def main() -> None:
    """Run the script, module or command of the command line, with the shim installed."""
    names, quiet, arguments = _options(sys.argv[1:])
    if arguments[:1] in (["-h"], ["--help"]):
        sys.stdout.write(_USAGE)
        return
    if not arguments or arguments == ["-m"]:
        sys.stderr.write(_USAGE)
        sys.exit(_BAD_COMMAND)
    if arguments[0] != "-m" and not Path(arguments[0]).is_file() and shutil.which(arguments[0]) is None:
        _fail(f"{arguments[0]}: there is no such file, and no such command")
    try:
        shim.install(shim.read_names(names), quiet=quiet)
    except ValueError as error:
        _fail(str(error))
    _run(arguments)


def _options(arguments: list[str]) -> tuple[list[str], bool, list[str]]:
    """Return the names of copies, whether to be quiet, and the rest of a command line."""
    names: list[str] = []
    quiet = False
    while arguments[:1] and arguments[0] in {"-q", "--quiet", "--as"}:
        if arguments[0] == "--as":
            names += arguments[1:2]
            arguments = arguments[2:]
        else:
            quiet, arguments = True, arguments[1:]
    return names, quiet, arguments


def _run(arguments: list[str]) -> None:
    """Run a module, a script, or another command."""
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        sys.path[0] = str(Path.cwd())
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    elif Path(arguments[0]).is_file():
        sys.argv = arguments
        sys.path[0] = str(Path(arguments[0]).resolve().parent)
        runpy.run_path(arguments[0], run_name="__main__")
    else:
        process = subprocess.Popen(arguments)  # noqa: S603 (the user's own command)
        # Its Python processes find the shim in their environment. A terminal sends Ctrl-C to the command, too.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda number, _: process.send_signal(number))
        status = process.wait()
        sys.exit(status if status >= 0 else 128 - status)


def _fail(message: str) -> None:
    sys.stderr.write(f"error: {message}\n")
    sys.stderr.flush()
    sys.exit(_BAD_COMMAND)


if __name__ == "__main__":
    main()
