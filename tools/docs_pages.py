"""Pages of the documentation that are made, not written: commands, rules, the gRPC contract, and copies of READMEs.

mkdocs calls ``on_files`` before every build, so that none of them can be stale.
"""

from __future__ import annotations

import contextlib
import io
import os
import posixpath
import re
import sys
import tempfile
from functools import partial
from importlib.resources import files as package_files
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))  # mkdocs loads this file by its path

from build_catalogue import catalogue  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

COPIES: Mapping[str, str] = {
    "agreement.md": "scorer/AGREEMENT.md",
    "changelog.md": "CHANGELOG.md",
    "challenges.md": "wings/CHALLENGES.md",
    "contributing.md": "CONTRIBUTING.md",
    "deployment.md": "deploy/README.md",
    "models/en_caption.md": "parser/spicegraph_parser/en_caption/README.md",
    "models/fluency.md": "wings/spicegraph_graded/fluency/data/README.md",
    "models/scenes.md": "wings/spicegraph_scenes/weights/README.md",
    "models/spice-g.md": "wings/spicegraph_graded/spice_g/data/README.md",
    "server.md": "service/README.md",
}
"""Pages of the site that stand elsewhere in the repository."""

PROTO = ROOT / "proto"
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s#]*)(#[^)\s]*)?\)")
_MESSAGE, _ENUM, _SERVICE = 4, 5, 6  # the fields of a FileDescriptorProto that hold them
_FIELD, _NESTED, _VALUE, _METHOD = 2, 3, 2, 2


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made; mkdocs calls this by name."""
    for path, page in PAGES.items():
        files.append(File.generated(config, path, content=page()))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, **_: object) -> str:
    """Lead links out of ``docs`` to copies on the site, or to the repository; mkdocs calls this by name."""
    source = COPIES.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    return _LINK.sub(lambda link: _link(link, source, page.file.src_uri, config.repo_url), markdown)


def _link(link: re.Match[str], source: str, page: str, repository: str | None) -> str:
    """Return a link as the site has it: files of the repository that the site lacks need the repository's address."""
    text, target, part = link.groups(default="")
    if re.match(r"[a-z]+:", target) or not target:
        return link.group()
    file = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    copies = {original: copy for copy, original in COPIES.items()}
    place = copies.get(file) or (file.removeprefix("docs/") if file.startswith("docs/") else None)
    if place is not None:
        return f"[{text}]({posixpath.relpath(place, posixpath.dirname(page))}{part})"
    return f"[{text}]({repository.rstrip('/')}/blob/main/{file}{part})" if repository else f"{text} (`{file}`)"


def copied_page(original: str) -> str:
    return (ROOT / original).read_text(encoding="utf-8")


def rules_page() -> str:
    head = (
        "# Rules\n\nWhat turns the dependencies of a caption into tuples, in the order of application. The examples "
        "are those of the rules' docstrings, which the tests run.\n\n"
    )
    return head + catalogue().replace("### ", "## ")


def commands_page() -> str:
    """Return what every command says with --help, sub-commands after their command."""
    os.environ["COLUMNS"] = "100"
    from spicegraph_service.cli import app  # noqa: PLC0415 (the width is read when the help is written)
    from spicegraph_service.registry import commands  # noqa: PLC0415

    parts = ["# Commands\n\nEvery option, as `--help` shows it."]
    for name in commands():
        text = _help(app.main, name)
        parts.append(f"## spicegraph {name}\n\n```text\n{text}\n```")
        parts += [
            f"### spicegraph {name} {sub}\n\n```text\n{_help(app.main, name, sub)}\n```" for sub in _sub_commands(text)
        ]
    return "\n\n".join(parts) + "\n"


def _help(main: Callable[[Sequence[str]], int], *command: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as said:
        if main([*command, "--help"]) != 0:
            raise RuntimeError(f"no help for {' '.join(command)}")
    return said.getvalue().strip()


def _sub_commands(text: str) -> list[str]:
    _, found, listed = text.partition("\nCommands:\n")
    lines = listed.splitlines() if found else []
    return [line.split()[0] for line in lines if line.startswith("  ") and not line.startswith("   ")]


def grpc_page() -> str:
    """Return the services and messages of the contract with the comments of the .proto files."""
    parts = [
        "# gRPC\n\nThe contract of `spicegraph serve`, package `spicegraph.v1`. `optional` fields are absent where "
        "undefined; every list may be empty."
    ]
    for file in sorted(_descriptors(), key=_services_first):
        comments = {
            tuple(location.path): location.leading_comments.strip() or location.trailing_comments.strip()
            for location in file.source_code_info.location
        }
        parts += _file(file, comments)
    return "\n\n".join(part for part in parts if part) + "\n"


def _services_first(file: FileDescriptorProto) -> tuple[bool, int]:
    """Order files: what offers calls before what holds their messages, and the short before the long."""
    return not file.service, len(file.message_type)


def _descriptors() -> list[FileDescriptorProto]:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet  # noqa: PLC0415
    from grpc_tools import protoc  # noqa: PLC0415

    sources = sorted(str(path) for path in PROTO.rglob("*.proto"))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "set"
        includes = [f"-I{PROTO}", f"-I{package_files('grpc_tools') / '_proto'}", f"-I{_googleapis()}"]
        arguments = ["protoc", *includes, f"--descriptor_set_out={out}", "--include_source_info", *sources]
        if protoc.main(arguments) != 0:
            raise RuntimeError("protoc refuses the contract")
        return list(FileDescriptorSet.FromString(out.read_bytes()).file)


def _googleapis() -> Path:
    import google.rpc  # noqa: PLC0415

    return Path(next(iter(google.rpc.__path__))).parent.parent


def _file(file: FileDescriptorProto, comments: Mapping[tuple[int, ...], str]) -> Iterator[str]:
    yield f"## {Path(file.name).name}"
    for number, service in enumerate(file.service):
        path = (_SERVICE, number)
        yield f"### service {service.name}\n\n{comments.get(path, '')}"
        for index, method in enumerate(service.method):
            asked, answered = (
                f"{'stream ' if streams else ''}{kind.rpartition('.')[2]}"
                for kind, streams in (
                    (method.input_type, method.client_streaming),
                    (method.output_type, method.server_streaming),
                )
            )
            said = comments.get((*path, _METHOD, index), "")
            yield f"#### {method.name}\n\n`{method.name}({asked}) returns ({answered})`\n\n{said}"
    for number, message in enumerate(file.message_type):
        yield from _message(message, message.name, (_MESSAGE, number), comments)
    for number, enum in enumerate(file.enum_type):
        path = (_ENUM, number)
        rows = [
            f"| `{value.name}` | {value.number} | {_cell(comments.get((*path, _VALUE, index), ''))} |"
            for index, value in enumerate(enum.value)
        ]
        head = "| value | number | meaning |\n|---|---|---|\n"
        yield f"### enum {enum.name}\n\n{comments.get(path, '')}\n\n{head}" + "\n".join(rows)


def _message(
    message: DescriptorProto, name: str, path: tuple[int, ...], comments: Mapping[tuple[int, ...], str]
) -> Iterator[str]:
    if message.options.map_entry:
        return
    rows = [
        f"| `{field.name}` | {_type(field, message)} | {_cell(comments.get((*path, _FIELD, index), ''))} |"
        for index, field in enumerate(message.field)
    ]
    table = "| field | type | meaning |\n|---|---|---|\n" + "\n".join(rows) if rows else ""
    yield f"### {name}\n\n{comments.get(path, '')}\n\n{table}"
    for index, inner in enumerate(message.nested_type):
        yield from _message(inner, f"{name}.{inner.name}", (*path, _NESTED, index), comments)


def _type(field: FieldDescriptorProto, message: DescriptorProto) -> str:
    maps = {inner.name: inner for inner in message.nested_type if inner.options.map_entry}
    name = field.type_name.rpartition(".")[2]
    if name in maps:
        key, value = maps[name].field
        return f"map of {_type(key, maps[name])} to {_type(value, maps[name])}"
    kind = f"`{name}`" if name else field.DESCRIPTOR.enum_types_by_name["Type"].values_by_number[field.type].name
    plain = kind.removeprefix("TYPE_").lower() if not name else kind
    label = "repeated " if field.label == field.LABEL_REPEATED else "optional " if field.proto3_optional else ""
    return f"{label}{plain}"


def _cell(comment: str) -> str:
    return " ".join(comment.split()).replace("|", "\\|")


PAGES: Mapping[str, Callable[[], str]] = {
    **{copy: partial(copied_page, original) for copy, original in COPIES.items()},
    "reference/commands.md": commands_page,
    "reference/rules.md": rules_page,
    "reference/grpc.md": grpc_page,
}
