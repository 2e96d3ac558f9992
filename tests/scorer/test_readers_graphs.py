"""Scene graphs in the notations of data sets: what is written is read back, and every fault of a file is named."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser import Fact, merge
from spicegraph_parser.errors import InputError
from spicegraph_parser.export import json_ld, to_graphml
from spicegraph_parser.spice.lexicon import load_lexicon
from spicegraph_parser.spice.loose import LOOSE, SAID_RULE, SCENE_RULE
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.readers.parses import Notation, check_graphs, graph_texts, read_graphs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

GENOME = [
    {
        "image_id": 7,
        "objects": [
            {"object_id": 1, "names": ["Man"], "x": 3},
            {"object_id": 2, "names": ["horse", "pony"], "attributes": ["brown", " "]},
        ],
        "relationships": [{"relationship_id": 5, "predicate": "RIDES", "subject_id": 1, "object_id": 2}],
    }
]
REGIONS = [
    {
        "image_id": 7,
        "regions": [
            {"phrase": "a man", "objects": [{"object_id": 1, "name": "man"}], "relationships": []},
            {"phrase": "nothing", "objects": [], "relationships": []},
        ],
    }
]
RIDES = [("man", "horse", "rides"), ("horse", "brown"), ("man",), ("horse",)]
GRAPHML = "<graphml xmlns='http://graphml.graphdrawing.org/xmlns'><graph edgedefault='directed'>{}</graph></graphml>"
DSG = "1 | entity - whole (man)\n2 | entity - whole (horse)\n3 | relation - action (man, horse, rides)\n"
DSG += "4 | attribute - color (horse, brown)\n\n1 | global - style (photo)\n2 | other - count (dogs, ==2)\n"


def _read(path: Path, notation: str, content: object) -> list[tuple[str, list[tuple[str, ...]]]]:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return [(caption.text, list(caption.tuples)) for caption in read_graphs(str(path), Notation(notation))]


@pytest.mark.parametrize(
    ("notation", "content", "expected"),
    [
        ("visual-genome", GENOME, [("7", RIDES)]),
        ("visual-genome", REGIONS, [("a man", [("man",)]), ("nothing", [])]),
        ("factual", "( man , rides , horse ) , ( horse , is , brown )\n", [(None, RIDES)]),
        (
            "discosg",
            {"caption": "x", "scene_graph": "( man , rides , horse ) , ( horse , is , brown )"},
            [("x", RIDES)],
        ),
        ("discosg", [{"scene_graph": ""}, {"scene_graph": "( dog )"}], [("", []), ("", [("dog",)])]),
        ("dsg", DSG, [("", RIDES), ("", [("dogs", "2"), ("dogs",)])]),
        ("dsg", {"text": "x", "qid2tuple": {"1": "entity - whole (man)"}}, [("x", [("man",)])]),
    ],
)
def test_each_notation_is_read(
    notation: str, content: object, expected: list[tuple[str | None, list[tuple[str, ...]]]], tmp_path: Path
) -> None:
    found = _read(tmp_path / "graphs", notation, content)
    assert [tuples for _, tuples in found] == [tuples for _, tuples in expected]
    assert all(text is None or text == own for (own, _), (text, _) in zip(found, expected, strict=True))


@pytest.mark.parametrize(
    ("notation", "content", "faults"),
    [
        ("factual", "( a , b\n( c )\n( a , , b )\nwords", ["line 1: has a '('", "line 3: has nothing", "line 4: is not"]),
        ("discosg", '{"scene_graph": "( a"}\n{"x": 1}\nzz', ["line 1, scene_graph", "line 2, scene_graph: is missing", "line 3: is not JSON"]),
        ("discosg", [{"scene_graph": 3, "caption": 4}], ["item 1, scene_graph: is 3", "item 1, caption: is 4"]),
        (
            "visual-genome",
            [
                {"image_id": 7, "objects": [{"object_id": 1, "names": ["man"]}, {"object_id": 1, "names": []}], "relationships": [{"predicate": "", "subject_id": [1], "object_id": 9}]},
                5,
                {"image_id": 8, "regions": [{"objects": 3}, 4]},
                {"image_id": 9, "regions": "x"},
                {"image_id": 10, "objects": [{"object_id": {}, "names": "a", "attributes": 1}, 2], "relationships": []},
            ],
            [
                "item 1 (image_id 7), objects[1].object_id: is the id of an earlier", "item 1 (image_id 7), objects[1].names",
                "relationships[0].subject_id: [1] is not", "relationships[0].object_id: 9 is not", "relationships[0].predicate",
                "item 2: is 5", "item 3 (image_id 8), regions[0].objects: is 3", "regions[0].relationships: is missing",
                "regions[1]: is 4", "item 4 (image_id 9), regions: is 'x'", "item 5 (image_id 10), objects[0].object_id: is {}",
                "item 5 (image_id 10), objects[1]: is 2",
            ],
        ),
        ("dsg", "1 | entity - whole (man)\nhello\n3 | relation - spatial (a, b)\n4 | other - x (a, b, c, d)", ["line 2: is not a tuple", "line 3: has 2 arguments, expected 3", "line 4: has 4"]),
        ("dsg", [{"qid2tuple": {"1": "x"}}, {"qid2tuple": 2}], ["item 1, qid2tuple[1]: is not", "item 2, qid2tuple: is 2"]),
        ("dsg", "\n \n", ["is empty"]),
        ("visual-genome", [], ["contains no graph"]),
        ("visual-genome", "{", ["is not JSON"]),
        ("json-ld", "{", ["@graph: is not JSON"]),
        ("json-ld", {"@graph": [1, {"objects": [{"@id": "_:a"}], "relations": [{"label": "on", "subject": {"@id": "_:b"}, "object": 3}]}]}, ["item 1: is 1, expected an object", "item 2, objects[0].label: is missing", "relations[0].subject: '_:b' is not the @id", "relations[0].object: 3 is not"]),
        ("graphml", "<graphml>", ["is not GraphML"]),
        ("graphml", GRAPHML.format("<node id='a'/>"), ["caption 0, objects[0].label: is missing"]),
    ],
)  # fmt: skip
def test_every_fault_is_named(notation: str, content: object, faults: list[str], tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        _read(tmp_path / "bad", notation, content)
    message = str(caught.value)
    assert [fault for fault in faults if fault not in message] == []
    assert len(faults) == 1 or f"{len(faults)} faults" in message, message


@pytest.mark.parametrize("notation", ["json-ld", "graphml"])
def test_what_is_written_for_graph_tools_is_read_back(notation: str, tmp_path: Path) -> None:
    given = [("a <b> & c", RIDES), ("two", [("dog", "dog", "chases"), ("dog", "old"), ("dog",), ("ball",)])]
    graphs = [(text, merge([[Fact(words, "", ()) for words in rows]], load_lexicon())) for text, rows in given]
    written = json.dumps(json_ld(graphs)) if notation == "json-ld" else to_graphml(graphs)
    found = _read(tmp_path / "graphs", notation, written)
    assert [(text, set(rows)) for text, rows in found] == [(text, set(rows)) for text, rows in given]


def test_a_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"( d\xff )")
    with pytest.raises(InputError, match="is not UTF-8"):
        read_graphs(str(tmp_path / "x"), Notation.FACTUAL)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 9) | st.text(max_size=4) | st.sampled_from(["( a )", "entity - a (b)"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "image_id",
                    "objects",
                    "relationships",
                    "regions",
                    "object_id",
                    "names",
                    "attributes",
                    "predicate",
                    "subject_id",
                    "phrase",
                    "scene_graph",
                    "caption",
                    "qid2tuple",
                    "text",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(st.lists(_JSON, min_size=1, max_size=3), st.sampled_from(list(Notation)))
def test_no_content_does_more_than_be_refused(
    tmp_path_factory: pytest.TempPathFactory, content: object, notation: Notation
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    try:
        for caption in _read(path, notation, content):
            assert all(1 <= len(words) <= 3 and all(words) for words in caption[1])
    except InputError:
        pass


class _Captions:
    """Facts of captions: one object, the caption itself; and one that people would not draw, and a loose word."""

    signature = "captions"

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        beside = Fact(("shadow",), SAID_RULE, ()), Fact(("x",), LOOSE, ())
        return ((Fact((text,), SCENE_RULE, ()), *beside) for text in texts)


@pytest.mark.parametrize(
    "text",
    [
        "( man , rides , horse ) , ( horse , is , brown )",
        json.dumps({"caption": "x", "scene_graph": "( man , rides , horse ) , ( horse , is , brown )"}),
        json.dumps(GENOME[0]),
        DSG.partition("\n\n")[0],
        json.dumps(json_ld([("x", merge([[Fact(words, "", ()) for words in RIDES]], load_lexicon()))])),
    ],
)
def test_texts_beside_captions_are_graphs_in_every_notation(text: str) -> None:
    """What a text looks like decides; a caption that has braces or numbers in it stays one.

    Of captions beside graphs, which people drew, what people would not draw is left out.
    """
    captions = ["{ a dog }", "2 | dogs", "a man"]
    found = list(graph_texts(_Captions()).facts([captions[0], text, *captions[1:]]))
    assert sorted(fact.words for fact in found.pop(1)) == sorted(RIDES)
    assert [[fact.words for fact in facts] for facts in found] == [[(caption,), ("x",)] for caption in captions]
    read = check_graphs([Item(1, text, tuple(captions))], source="x")
    assert list(read) == [text]
    assert next(graph_texts(_Captions(), read).facts([text])) is read[text].facts, "it is not read again"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (json.dumps(REGIONS[0]), "candidate: has 2 graphs, expected one"),
        (json.dumps({"objects": []}), "relationships: is missing"),
        ("1 | entity - whole (man", "line 1: is not a tuple"),
        ('{"scene_graph": "( dog"}', "has a '\\(' without its '\\)'"),
        ("<graphml", "is not GraphML"),
    ],
)
def test_a_text_that_looks_like_a_graph_but_is_faulty_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        check_graphs([Item(1, text, ("a dog",))], source="x")
