"""The pipelines that parse captions, by name: the bundled one, registered ones, or any of spaCy.

A package registers a pipeline in the entry-point group ``spicegraph.pipelines``: its name, or the ending of names
(``+long``) of pipelines that it changes, and a function that loads the pipeline of a whole name.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, partial
from importlib.metadata import entry_points
from itertools import chain, groupby, islice
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

from spicegraph_parser.caption_pipeline import pipeline_path
from spicegraph_parser.errors import DataError, InputError, expect, expect_list, needs_extra
from spicegraph_parser.fronts.documents import read_doc
from spicegraph_parser.fronts.spacy import installed_pipelines, is_doc, load_spacy
from spicegraph_parser.languages import Language, find_language
from spicegraph_parser.spice.extraction import ParsedCaption, extract
from spicegraph_parser.spice.parse import Caption, normalise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from importlib.metadata import EntryPoint
    from pathlib import Path

    from spacy.language import Language as SpacyPipeline
    from spacy.tokens import Doc

    from spicegraph_parser.caption_pipeline.encoder import MakeProduct
    from spicegraph_parser.spice.rules import Fact

DEFAULT_PIPELINE = "en_caption"  # The pipeline that ships with the package.
SCENE = "scene"  # The graph style of the registered pipeline of this name: graphs as people draw them.

# What else the bundled networks run on: by the ending of a pipeline's name, which is also the extra that installs what
# is needed, the place of what makes their large products.
RUNTIMES: dict[str, str] = {"fast": "spicegraph_parser.caption_pipeline.integers:IntegerProduct"}


class FrontEnd(Protocol):
    """Parser of captions: the bundled pipeline, a spaCy pipeline, or the scene parser."""

    def parse(self, texts: Iterable[str], *, batch_size: int | None = None) -> Iterator[Caption]:
        """See :meth:`CaptionPipeline.parse`."""

    def captions(self, texts: Iterable[str], *, batch_size: int | None = None) -> Iterator[ParsedCaption]:
        """See :meth:`CaptionPipeline.captions`."""


@runtime_checkable
class TracedFrontEnd(FrontEnd, Protocol):
    """Parser of captions by passes, which can trace each pass's changes."""

    def trace(self, texts: Iterable[str]) -> Iterator[str]:
        """See :meth:`CaptionPipeline.trace`."""


@dataclass(frozen=True, slots=True)
class CaptionPipeline:
    """A pipeline that turns captions into parses and facts.

    ``signature`` is name, version and a hash of the pipeline's files, such as ``en_caption-1.6.0-8d5f3a21``;
    ``language`` is the code of the language that it reads. Without ``loose``, which is faster, :meth:`facts` gives what
    SPICE counts only, and no loose words. ``card`` is the file of its model card.
    """

    front_end: FrontEnd
    signature: str
    loose: bool = True
    language: str = "en"
    card: Path | None = None

    def parse(self, texts: Iterable[str], *, batch_size: int | None = None) -> Iterator[Caption]:
        """Parse captions, in order and in batches; an empty caption gives an empty sentence list.

        Args:
            texts: the captions.
            batch_size: captions at a time; ``None``: what the pipeline itself prefers.

        Raises:
            LimitError: a caption is longer than ``MAX_CAPTION_LENGTH``.
        """
        return self.front_end.parse(texts, batch_size=batch_size)

    def captions(self, texts: Iterable[str], *, batch_size: int | None = None) -> Iterator[ParsedCaption]:
        """Parse captions to facts, in order: by SPICE's rules, or as the scene parser sees them."""
        return self.front_end.captions(texts, batch_size=batch_size)

    def trace(self, texts: Iterable[str]) -> Iterator[str]:
        """Yield lines of text: each sentence of captions, and below it each pass's changes.

        Raises:
            InputError: this pipeline has no passes.
            LimitError: a caption is longer than ``MAX_CAPTION_LENGTH``.
        """
        if not isinstance(self.front_end, TracedFrontEnd):
            raise InputError(f"the pipeline {self.signature} has no passes to trace; the scene parser has")
        return self.front_end.trace(texts)

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        """Return the facts of each caption that scores count, with those of loose words if they are wanted."""
        return (caption.every_fact if self.loose else caption.said for caption in self.captions(texts))


@dataclass(frozen=True, slots=True)
class RuleFrontEnd:
    """A :class:`FrontEnd` that applies SPICE's rules to a parser's captions."""

    parse: Callable[..., Iterator[Caption]]

    def captions(self, texts: Iterable[str], *, batch_size: int | None = None) -> Iterator[ParsedCaption]:
        """See :meth:`CaptionPipeline.captions`."""
        return map(extract, self.parse(texts, batch_size=batch_size))


def _parse_bundled(
    product: tuple[MakeProduct, ...], texts: Iterable[str], *, batch_size: int | None = None
) -> Iterator[Caption]:
    """Parse captions with the bundled pipeline; its network is read when the first caption comes."""
    from spicegraph_parser.caption_pipeline.analyser import load_analyser  # noqa: PLC0415 (reads with numpy)

    stream = iter(texts)
    done = 0
    while batch := list(islice(stream, batch_size or 2048)):
        normal = [normalise(text, i) for i, text in enumerate(batch, done)]
        yield from load_analyser(*product).captions(batch, normal)
        done += len(batch)


@cache
def registered_pipelines() -> Mapping[str, EntryPoint]:
    """Return the entry points that load pipelines, by name or ending."""
    return {point.name: point for point in entry_points(group="spicegraph.pipelines")}


def load_pipeline(name: str = DEFAULT_PIPELINE) -> CaptionPipeline:
    """Load the bundled pipeline, which runs without spaCy, a registered one, or an installed one of spaCy.

    Args:
        name: of the bundled pipeline, of a registered one (``scene``), or the name or path of a spaCy pipeline. Endings
            change how it runs: ``en_caption+fast`` and ``scene+fast`` run the bundled networks on the runtime of that
            name in :data:`RUNTIMES`, ``+long`` resolves pronouns across sentences. Signatures say so.

    Raises:
        InputError: the name is not a string.
        DataError: it is not installed, or it lacks a tagger, a lemmatizer or a parser.
    """
    expect(name, str, "pipeline", "a name")
    network, plus, runtime = name.partition("+")
    if name != DEFAULT_PIPELINE:
        points = registered_pipelines()
        point = points.get("+" + name.rpartition("+")[2]) or points.get(network)
        if point is not None:
            pipeline: CaptionPipeline = point.load()(name)
            return pipeline
    if network == DEFAULT_PIPELINE:
        front_end = RuleFrontEnd(partial(_parse_bundled, load_runtime(name)))
        return CaptionPipeline(front_end, _bundled_signature() + plus + runtime, card=pipeline_path() / "README.md")
    try:
        installed = load_spacy(name)
    except DataError as error:
        if close := get_close_matches(network, (*_named(), *installed_pipelines()), n=1, cutoff=0.8):
            raise DataError(f"there is no pipeline {name!a} (did you mean {close[0]}?)") from error
        raise
    return CaptionPipeline(installed, spacy_signature(installed.nlp), language=installed.language.code)


def _named() -> list[str]:
    """Return the names of the bundled and the registered pipelines."""
    return [DEFAULT_PIPELINE, *(name for name in registered_pipelines() if not name.startswith("+"))]


def load_runtime(name: str) -> tuple[()] | tuple[MakeProduct]:
    """Load the runtime in a pipeline's name, such as ``+fast``; empty for plain numpy.

    Raises:
        DataError: there is no runtime of that name, or it is not installed.
    """
    _, plus, runtime = name.partition("+")
    if not plus:
        return ()
    if runtime not in RUNTIMES:
        known = ", ".join(sorted(RUNTIMES))
        raise DataError(f"pipeline {name!r}: unknown runtime {runtime!r} (known: {known})")
    with needs_extra(runtime, f"the pipeline {name!r}"):
        return (resolve_name(RUNTIMES[runtime]),)


def model_card(name: str = DEFAULT_PIPELINE) -> str:
    """Return the model card of a bundled or registered pipeline, in Markdown.

    Raises:
        DataError: the pipeline has no model card, or it can't be read.
    """
    card = load_pipeline(name).card if name in _named() else None
    if card is None:
        raise DataError(f"{name} has no model card here; those with one are {' and '.join(_named())}")
    try:
        return card.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"its model card can't be read ({error}); install the package again") from error


def _signature(meta: Mapping[str, object], folder: Path | None) -> str:
    name = f"{meta['lang']}_{meta['name']}-{meta['version']}"
    return name if folder is None else f"{name}-{files_digest(folder)}"


def spacy_signature(nlp: SpacyPipeline) -> str:
    """Return a spaCy pipeline's signature, without a hash where it was not read from files."""
    return _signature(nlp.meta, nlp.path)


@cache
def _bundled_signature() -> str:
    folder = pipeline_path()
    try:
        meta = json.loads((folder / "meta.json").read_bytes())
    except OSError as error:
        raise DataError(f"the bundled pipeline can't be read ({error}); install the package again") from error
    return _signature(meta, folder)


def files_digest(folder: Path) -> str:
    """Return a hash of a pipeline's files: two trainings may share name and version, but not parses."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix not in {".md", ".py", ".pyc"}:
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:8]


def check_language(language: Language, spoken: str, signature: str) -> None:
    """Raise an InputError where captions are in another language than the one that a pipeline reads."""
    if spoken != language.code:
        raise InputError(
            f"language {language.code}: the pipeline {signature} reads {find_language(spoken).name}; "
            f"name one for {language.name}, such as {language.code}_core_news_sm"
        )


def parse_captions(
    texts: Iterable[str | Doc], pipeline: CaptionPipeline | str = DEFAULT_PIPELINE, *, language: str | None = None
) -> Iterator[ParsedCaption]:
    """Parse captions to tuples and graphs; documents that spaCy has parsed are read as they are.

    ``language``: what the captions are in, which the pipeline must read.

    Raises:
        DataError: a document lacks tags, lemmas or dependencies, or their labels are of no scheme that is known.

    Example:
        >>> caption = next(parse_captions(["A man rides a brown horse."]))
        >>> caption.tuples
        (('man', 'horse', 'ride'), ('horse', 'brown'), ('man',), ('horse',))
    """
    expect_list(texts, "captions", "a list of strings or of spaCy's documents")
    loaded = pipeline if isinstance(pipeline, CaptionPipeline) else load_pipeline(pipeline)
    if language is not None:
        check_language(find_language(language), loaded.language, loaded.signature)
    return chain.from_iterable(_captions(loaded, *group) for group in groupby(texts, key=is_doc))


def _captions(pipeline: CaptionPipeline, are_docs: bool, captions: Iterable[str | Doc]) -> Iterator[ParsedCaption]:  # noqa: FBT001 (a key of groupby)
    if not are_docs:
        return pipeline.captions(cast("Iterable[str]", captions))
    return (extract(read_doc(doc)) for doc in captions if is_doc(doc))
