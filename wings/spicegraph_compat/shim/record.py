"""What the shim did in a program and its child processes, and the report of it when the program ends."""
# Every covered process appends lines (kind, process id, text) to one file, whose path the children find in their
# environment. The process that made the file prints the report and removes it.

from __future__ import annotations

import atexit
import os
import re
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType, ModuleType

AUDIT_EVENT: Final = "spicegraph.without_java"
"""Raised (``sys.audit``) by the classes that are Java programs in the original, with the program's name."""

_PATH_VARIABLE: Final = "SPICEGRAPH_SHIM_RECORD"
_STARTS: Final = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.system")
_JAVA: Final = re.compile(r"(?:^|[\s/\\;&|'\"])java(?:\.exe)?(?:$|[\s'\"])")
_OF_PYTHON: Final = ("subprocess.py", "os.py", "spicegraph_compat/shim/record.py", "spicegraph_compat\\shim\\record.py")
_SCORERS: Final = {
    "Bleu": "pycocoevalcap.bleu.bleu",
    "Cider": "pycocoevalcap.cider.cider",
    "CiderD": "pyciderevalcap.ciderD.ciderD",
    "Meteor": "pycocoevalcap.meteor.meteor",
    "PTBTokenizer": "pycocoevalcap.tokenizer.ptbtokenizer",
    "Rouge": "pycocoevalcap.rouge.rouge",
    "Spice": "pycocoevalcap.spice.spice",
}
"""The classes by which a vendored copy is known, and their modules in the original."""

_noted: set[tuple[str, str]] = set()


def start(*, quiet: bool) -> None:
    """Begin to note; the first process of a program reports when it ends, or ``quiet`` warns only."""
    sys.addaudithook(_watch)
    os.register_at_fork(after_in_child=_noted.clear)
    path = os.environ.get(_PATH_VARIABLE)
    if path and os.path.exists(path):  # noqa: PTH110 (pathlib takes longer to import than the rest of the shim)
        atexit.register(_note_copies)
        return
    import tempfile  # noqa: PLC0415 (the children do not need it)

    handle, path = tempfile.mkstemp(prefix="spicegraph-shim-", suffix=".tsv")
    os.close(handle)
    os.environ[_PATH_VARIABLE] = path
    atexit.register(_finish, path, os.getpid(), quiet=quiet)


def note(kind: str, text: str) -> None:
    """Note something once per process; a record that cannot be written never stops the program."""
    if (kind, text) in _noted:
        return
    _noted.add((kind, text))
    line = "\t".join((kind, str(os.getpid()), " ".join(text.split()))) + "\n"
    try:
        handle = os.open(os.environ[_PATH_VARIABLE], os.O_WRONLY | os.O_APPEND)
    except (KeyError, OSError):
        return
    try:
        os.write(handle, line.encode("utf-8", "replace"))
    except OSError:
        return
    finally:
        os.close(handle)


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    """Note where Java is started, and where it would have been; an audit hook, so it must be quick."""
    if event == AUDIT_EVENT:
        note("spared", str(arguments[0]))
    elif event in _STARTS:
        program, command = arguments[0], arguments[1] if len(arguments) > 1 else ()
        words = [program, *(command[:3] if isinstance(command, list | tuple) else [command])]
        if any(_JAVA.search(os.fsdecode(word)) for word in words if isinstance(word, str | bytes | os.PathLike)):
            frame: FrameType | None = sys._getframe(1)
            while frame is not None and frame.f_code.co_filename.endswith(_OF_PYTHON):
                frame = frame.f_back
            note("java", f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "an unknown line")


def _note_copies() -> None:
    for name in list(copies()):
        note("copy", name)


def copies() -> Iterator[str]:
    """Yield ``NAME=TARGET`` for loaded modules that are copies of pycocoevalcap's, as ``--as`` takes it."""
    known: set[str] = set()
    for module in list(sys.modules.values()):
        for class_name, home in _SCORERS.items():
            if _has_copy(module, class_name):
                name = _name_of(module.__name__, home)
                if name not in known:
                    known.add(name)
                    yield name


def _has_copy(module: ModuleType | None, class_name: str) -> bool:
    try:
        names = vars(module)
    except TypeError:  # lazy modules and stand-ins need not have a dictionary
        return False
    candidate = names.get(class_name)
    method = "tokenize" if class_name == "PTBTokenizer" else "compute_score"
    return (
        isinstance(candidate, type)
        and candidate.__module__ == names.get("__name__")
        and not candidate.__module__.startswith("spicegraph")
        and candidate.__module__ != "__main__"
        and method in vars(candidate)
    )


def _name_of(module: str, home: str) -> str:
    """Return ``NAME=TARGET`` that makes a module with a scorer one of ours."""
    package, folder, file = home.split(".")
    if module in {f"{folder}.{file}", folder}:  # first: "bleu.bleu" also ends as a module of a package "bleu" does
        return f"{folder}={package}.{folder}"
    for tail in (f"{folder}.{file}", folder, file):
        if module.endswith(f".{tail}"):
            return f"{module.removesuffix(f'.{tail}')}={package}"
    return f"{module}={home}"


def _finish(path: str, process: int, *, quiet: bool) -> None:
    """Print the report, unless this is a fork of the process that began the record."""
    if os.getpid() != process:
        return
    _note_copies()
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 (as above)
            rows = [line.rstrip("\n").split("\t") for line in file]
        os.remove(path)  # noqa: PTH107
    except OSError:
        return
    sys.stderr.write("".join(f"spicegraph_compat.shim: {line}\n" for line in report(rows, quiet=quiet)))


def _replaced(processes: dict[str, set[str]]) -> str:
    """Return the report line on replaced modules, with the number of processes."""
    count = len(set().union(*processes.values()))
    # Modules that hold others only are left out.
    leaves = [name for name in sorted(processes) if not any(other.startswith(f"{name}.") for other in processes)]
    return f"replaced {', '.join(leaves)}" + (f", in {count} processes" if count > 1 else "")


def report(rows: list[list[str]], *, quiet: bool = False) -> list[str]:
    """Return the lines of the report of a record."""
    by_kind: dict[str, dict[str, set[str]]] = {}
    for kind, process, text in (row for row in rows if len(row) == 3):
        by_kind.setdefault(kind, {}).setdefault(text, set()).add(process)
    replaced, spared = by_kind.get("replaced", {}), by_kind.get("spared", {})
    lines = []
    if replaced and not quiet:
        lines.append(_replaced(replaced))
    if spared and not quiet:
        lines.append(f"Java would have started for {', '.join(sorted(spared))}")
    lines += [f"warning: Java was started by {where}" for where in sorted(by_kind.get("java", ()))]
    copies = sorted(by_kind.get("copy", ()))
    if not replaced:
        reason = "" if copies else ": no process imported pycocoevalcap, pyciderevalcap or a copy of them"
        lines.append(f"warning: nothing was replaced{reason}")
    for name in copies:
        copy, _, home = name.partition("=")
        lines.append(f"warning: {copy} is a copy of {home} and ran as it is")
    if copies:
        options = " ".join(f"--as {name}" for name in copies)
        variable = f"SPICEGRAPH_SHIM={','.join(copies)}"
        lines.append(f"warning: to replace it, run python -m spicegraph_compat.shim {options} ..., or set {variable}")
    return lines
