"""`spicegraph` and `python -` for shells, as forks of a process that has loaded all: each as its own process, but started at once.

    python warm_programs.py FOLDER

Puts two programs into FOLDER, which a shell finds where FOLDER stands first in PATH: they hand their arguments, folder,
environment and open files to this process, which forks, and they end as the fork does. A server is a process from the start.
"""

from __future__ import annotations

import gc
import marshal
import os
import socket
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Final

from spicegraph_parser.runtime import rare_collections
from spicegraph_scorer import METRICS, Item, score
from spicegraph_service.cli.app import command_line, main

# Without site-packages and the reader's settings it starts in ten milliseconds.
_PROGRAM: Final = """#!{python} -IS
import marshal, os, socket, sys
name, arguments = os.path.basename(sys.argv[0]), sys.argv[1:]
if (name == "python" and arguments != ["-"]) or arguments[:1] in (["serve"], ["view"]):
    program = os.path.join({programs!r}, name)
    os.execv(program, [program, *arguments])
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect({address!r})
    socket.send_fds(connection, [b"."], [0, 1, 2])
    connection.sendall(marshal.dumps((name, arguments, os.getcwd(), dict(os.environ))))
    connection.shutdown(socket.SHUT_WR)
    said = connection.makefile("rb").read()
sys.exit(said[0] if said else "the process ended without a code")
"""


def prepare() -> None:
    """Load the commands, and what the metrics need."""
    command_line()
    items = [
        Item(number, f"a brown {word} runs", (f"a {word} runs", "two dogs"))
        for number, word in enumerate(("dog", "cat"))
    ]
    for metric in sorted({"spice", "spice-g", "meteor", "cider", "bleu", "rouge", "detail"} & METRICS.keys()):
        score(items, [metric])
    gc.freeze()


def run(connection: socket.socket) -> int:
    """Be the program that a shell has started; return its code, which the shell's program is told."""
    _, descriptors, _, _ = socket.recv_fds(connection, 1, 3)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    # The objects of this process know its files as they were; line by line, as Python has standard error.
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    name, arguments, folder, environment = marshal.loads(connection.makefile("rb").read())
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [name, *arguments] if name == "spicegraph" else arguments
    sys.path[0] = ""
    code = 1
    try:
        if name == "spicegraph":
            code = main()
        else:
            sys.modules["__main__"] = program = ModuleType("__main__")
            exec(compile(sys.stdin.read(), "<stdin>", "exec", dont_inherit=True), program.__dict__)
            code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:  # noqa: BLE001 (as python does)
        traceback.print_exc()
    sys.stdout.flush()
    connection.send(bytes([code]))  # who reads it waits until this process has ended
    return code


def serve(folder: Path) -> int:
    """Fork for each program that a shell starts; return a fork's code."""
    address = str(folder / "socket")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        text = _PROGRAM.format(python=sys.executable, programs=str(Path(sys.executable).parent), address=address)
        for name in ("spicegraph", "python"):
            (folder / name).write_text(text, "utf-8")
            (folder / name).chmod(0o755)
        (folder / "ready").touch()
        while True:
            connection, _ = listener.accept()
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            if os.fork() == 0:
                listener.close()
                return run(connection)
            connection.close()


if __name__ == "__main__":
    with rare_collections():
        prepare()
    sys.exit(serve(Path(sys.argv[1])))
