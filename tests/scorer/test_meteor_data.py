"""METEOR's data files, the index that is built from them, and what happens when something is missing."""

import gzip
import multiprocessing
import pickle
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import fields
from importlib.machinery import PathFinder
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser.errors import DataError
from spicegraph_scorer.metrics.meteor import cache_directory, find_sources, load_data, score_texts
from spicegraph_scorer.metrics.meteor.data import Sources, open_index, write_index
from spicegraph_scorer.metrics.meteor.paraphrases import BACK, Paraphrases, PhraseFinder, build_index
from spicegraph_scorer.metrics.meteor.text import Module, TextWords, english_stemmer

PARAPHRASES = [("a b", "c"), ("a b", "b c d"), ("b c d", "a b"), ("c", "d"), ("c", "a"), ("d", "a a a a a a a")]

Write = Callable[..., Sources]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(pairs: list[tuple[str, str]] = PARAPHRASES) -> Sources:
        """Write a small set of METEOR's files."""
        folder = tmp_path / "sources"
        folder.mkdir(exist_ok=True)
        with zipfile.ZipFile(folder / "meteor-1.5.jar", "w") as jar:
            jar.writestr("synonym/english.synsets", "dog\n1 2\nhound\n2\nbig_dog\n3\n")
            jar.writestr("function/english.words", "the\na\n")
            jar.writestr("nonbreaking/english.prefixes", "# names\nMr\n\nNo #NUMERIC_ONLY#\n")
        text = "".join(f"0.5\n{source}\n{target}\n" for source, target in pairs)
        (folder / "paraphrase-en.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
        return Sources(folder / "meteor-1.5.jar", folder / "paraphrase-en.gz")

    return write


def links(table: Mapping[int, int]) -> dict[int, tuple[int, int]]:
    return {other: (value & ((1 << BACK) - 1), value >> BACK) for other, value in table.items()}


# The files


def test_the_word_lists_are_read_from_the_jar(write: Write) -> None:
    sources = write()
    assert sources.function_words == {"the", "a"}
    assert sources.prefixes == {"Mr": False, "No": True}
    assert sources.synsets == {"dog": [1, 2], "hound": [2], "big_dog": [3]}


def test_the_installed_lists_have_their_known_sizes() -> None:
    sources = find_sources()
    assert len(sources.function_words) == 93
    assert len(sources.synsets) == 147_306
    assert [word for word, numeric in sources.prefixes.items() if numeric] == ["No", "Art", "pp"]


def test_the_fingerprint_follows_the_content(write: Write) -> None:
    first = write().fingerprint
    assert write().fingerprint == first
    assert write([("a", "b")]).fingerprint != first


def test_a_missing_package_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def not_installed(name: str) -> Distribution:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("spicegraph_scorer.metrics.meteor.data.distribution", not_installed)
    monkeypatch.setattr(PathFinder, "find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"pip install spicegraph$"):
        find_sources()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"meteor-1\.5\.jar is missing"):
        Sources(tmp_path / "meteor-1.5.jar", tmp_path / "paraphrase-en.gz")


def test_a_jar_that_is_none_is_refused(write: Write) -> None:
    sources = write()
    sources.jar.write_bytes(b"no jar")
    with pytest.raises(DataError, match=r"meteor-1\.5\.jar is damaged"):
        _ = sources.fingerprint


def test_a_jar_without_its_lists_is_refused(write: Write) -> None:
    sources = write()
    with zipfile.ZipFile(sources.jar, "w") as jar:
        jar.writestr("function/english.words", "the")
    with pytest.raises(DataError, match=r"is damaged .*english\.prefixes"):
        _ = sources.prefixes
    with pytest.raises(DataError, match="is damaged"):
        _ = sources.fingerprint


# The index


def test_the_index_holds_every_paraphrase_in_order(write: Write) -> None:
    table = build_index(write().paraphrases)
    finder_words = ["a", "b", "c", "d"]
    texts = [(0, 1), (2,), (1, 2, 3), (3,), (0,), (0,) * 7]
    rows = dict(
        zip(table.sources.tolist(), zip(table.target_starts, table.target_starts[1:], strict=False), strict=True)
    )
    phrases = [" ".join(finder_words[word] for word in text) for text in texts]
    assert len(table.phrases) == len(phrases)
    assert len(rows) == 4
    assert sorted(end - start for start, end in rows.values()) == [1, 1, 2, 2]
    assert len(table.targets) == len(PARAPHRASES)


def test_phrases_and_their_links_are_found(write: Write, tmp_path: Path) -> None:
    data = load_data(cache=tmp_path, sources=write())
    words = TextWords(data)
    texts = [words.numbers(["x", "a", "b", "c", "d"]), words.numbers(["d"]), words.numbers(["a"] * 8)]
    occurrences, linked = PhraseFinder(data.paraphrases).find(texts, words.texts)
    names = {number: texts[0][start : start + size] for start, size, number in occurrences[0]}
    phrases = {" ".join(words.texts[word] for word in name): number for number, name in names.items()}
    assert set(phrases) == {"a", "a b", "b c d", "c", "d"}
    assert [occurrence[:2] for occurrence in occurrences[0]] == [(1, 1), (1, 2), (2, 3), (3, 1), (4, 1)]
    assert [occurrence[2] for occurrence in occurrences[1]] == [phrases["d"]]
    assert [start for start, size, _ in occurrences[2] if size == 7] == [0, 1]
    assert links(linked[phrases["a b"]]) == {phrases["c"]: (1, 0), phrases["b c d"]: (2, 1)}
    assert links(linked[phrases["b c d"]]) == {phrases["a b"]: (1, 2)}
    assert links(linked[phrases["c"]]) == {phrases["d"]: (1, 0), phrases["a"]: (2, 0), phrases["a b"]: (0, 1)}


def test_long_words_and_empty_texts_hold_no_phrases(write: Write, tmp_path: Path) -> None:
    data = load_data(cache=tmp_path, sources=write())
    words = TextWords(data)
    texts = [words.numbers(["a", "x" * 10_000, "b"]), (), words.numbers(["c"])]
    occurrences, _ = PhraseFinder(data.paraphrases).find(texts, words.texts)
    assert [[occurrence[:2] for occurrence in found] for found in occurrences] == [[(0, 1)], [], [(0, 1)]]
    assert PhraseFinder(data.paraphrases).find([(), ()], [])[0] == [[], []]


@given(st.lists(st.tuples(st.text("ab ", min_size=1, max_size=5), st.text("ab ", min_size=1, max_size=5)), min_size=1))
def test_the_index_is_the_table(pairs: list[tuple[str, str]]) -> None:
    grouped = sorted(set(pairs))
    with pytest.MonkeyPatch.context() as patch:
        text = "".join(f"1\n{source}\n{target}\n" for source, target in grouped).encode()
        patch.setattr(
            "spicegraph_scorer.metrics.meteor.paraphrases._unpacked", lambda path, progress: [text[:7], text[7:]]
        )
        table = build_index(Path("unread"))
    assert len(table.phrases) == len({phrase for pair in grouped for phrase in pair})
    assert len(table.sources) == len({source for source, _ in grouped})
    assert len(table.targets) == len(grouped)
    assert table.target_starts[-1] == len(grouped)
    assert (np.diff(table.phrases.astype(object)) > 0).all()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"no gzip", "is damaged"),
        (gzip.compress(b"1\na\nb\n", mtime=0)[:-12], "ends too early"),
        (gzip.compress(b"1\na\nb\n1\n", mtime=0), "ends inside an entry"),
        (gzip.compress(b"", mtime=0), "contains no paraphrases"),
        (
            gzip.compress(b"1\na\nb\n1\nc\nb\n1\na\nc\n", mtime=0),
            "does not list the paraphrases of each phrase together",
        ),
    ],
)
def test_a_damaged_paraphrase_file_is_refused(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "paraphrase-en.gz"
    path.write_bytes(content)
    with pytest.raises(DataError, match=reason):
        build_index(path)


# The file of the index

INDEX = Paraphrases(
    phrases=np.arange(5, dtype=np.uint64),
    sources=np.empty(0, dtype=np.uint32),
    target_starts=np.ones(1, dtype=np.uint32),
    targets=np.arange(3, dtype=np.uint32),
)


def lists(index: Paraphrases) -> dict[str, tuple[np.dtype[Any], list[int]]]:
    arrays = {field.name: getattr(index, field.name) for field in fields(index)}
    return {name: (array.dtype, array.tolist()) for name, array in arrays.items()}


def test_an_index_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_index(path, INDEX, label="x")
    opened = open_index(path, label="x")
    assert opened is not None
    assert lists(opened) == lists(INDEX)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.slow
def test_every_altered_or_cut_index_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_index(path, INDEX, label="x")
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        assert open_index(path, label="x") is None, size
    unharmed = set()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        if (opened := open_index(path, label="x")) is not None:
            assert lists(opened) == lists(INDEX), place
            unharmed.add(whole[place : place + 1])
    assert unharmed <= {b"<", b"\x03"}  # "=" and format 2 say the same
    path.write_bytes(whole)
    assert open_index(path, label="y") is None
    assert open_index(tmp_path / "absent", label="x") is None


# Opening


def unexpected(share: float) -> None:
    pytest.fail(f"built again ({share})")


def test_the_index_is_built_once(write: Write, tmp_path: Path) -> None:
    progress: list[float] = []
    load_data(cache=tmp_path / "cache", sources=write(), progress=progress.append)
    assert progress[-1] == 1.0
    assert progress == sorted(progress)
    load_data(cache=tmp_path / "cache", sources=write(), progress=unexpected)


def test_a_stale_index_is_built_again(write: Write, tmp_path: Path) -> None:
    load_data(cache=tmp_path, sources=write())
    data = load_data(cache=tmp_path, sources=write([("cat", "kitty")]))
    assert len(data.paraphrases.phrases) == 2


def test_a_damaged_index_is_built_again(write: Write, tmp_path: Path) -> None:
    load_data(cache=tmp_path, sources=write())
    path = tmp_path / "meteor-1.5.npy"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    load_data(cache=tmp_path, sources=write())
    assert path.read_bytes() == whole


def test_a_folder_that_cannot_be_written_to_is_named(write: Write, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="Set XDG_CACHE_HOME to another folder"):
        load_data(cache=tmp_path / "file" / "cache", sources=write())


@pytest.mark.parametrize("package", ["portalocker", "snowballstemmer"])
def test_a_missing_dependency_is_named_with_its_remedy(
    package: str, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(DataError, match=r"pip install spicegraph$"):
        TextWords(load_data(cache=tmp_path, sources=write()))


def test_a_stemmer_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spicegraph_scorer.metrics.meteor.text.version", lambda name: "3.0.1")
    with pytest.raises(DataError, match=r"snowballstemmer 3\.0\.1 has other stems"):
        english_stemmer()


def test_the_cache_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "spicegraph"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_directory() == Path.home() / ".cache" / "spicegraph"


def build_and_count(sources: Sources, cache: Path) -> tuple[int, int]:
    """Open the data; return how often progress was reported and how many phrases there are."""
    calls: list[float] = []
    data = load_data(cache=cache, sources=sources, progress=calls.append)
    return len(calls), len(data.paraphrases.phrases)


def test_processes_that_start_at_once_build_once(write: Write, tmp_path: Path) -> None:
    pairs = [(f"word {number}", f"other {number}") for number in range(20_000)]
    sources = write(pairs)
    with multiprocessing.get_context("fork").Pool(3) as pool:
        results = pool.starmap(build_and_count, [(sources, tmp_path / "cache")] * 3)
    assert {phrases for _, phrases in results} == {40_000}
    assert sum(calls > 0 for calls, _ in results) == 1
    assert {file.name for file in (tmp_path / "cache").iterdir()} == {"meteor-1.5.npy", "meteor-1.5.lock"}


def test_data_goes_to_another_process_without_its_arrays(write: Write, tmp_path: Path) -> None:
    data = load_data(cache=tmp_path, sources=write())
    packed = pickle.dumps(data)
    assert len(packed) < 2000
    assert pickle.loads(packed).paraphrases.phrases.tolist() == data.paraphrases.phrases.tolist()


# Words


def test_words_match_by_hash_stem_and_synset(write: Write, tmp_path: Path) -> None:
    words = TextWords(load_data(cache=tmp_path, sources=write()))
    numbers = dict(
        zip(texts := ["an", "c0", "dogs", "dog", "hound", "the", "puppy"], words.numbers(texts), strict=True)
    )
    assert words.matches(numbers["an"])[numbers["c0"]] == (Module.EXACT,)
    assert words.matches(numbers["dog"])[numbers["dogs"]] == (Module.STEM, Module.SYNONYM)
    assert words.matches(numbers["dogs"])[numbers["dog"]] == (Module.STEM, Module.SYNONYM)
    assert words.matches(numbers["hound"])[numbers["dog"]] == (Module.SYNONYM,)
    assert numbers["puppy"] not in words.matches(numbers["dog"])
    assert [words.is_function[numbers[word]] for word in ("the", "dog")] == [True, False]


def test_an_item_without_references_is_refused(write: Write, tmp_path: Path) -> None:
    data = load_data(cache=tmp_path, sources=write())
    with pytest.raises(ValueError, match="METEOR needs a reference"):
        score_texts([("a dog", [])], data=data)
