"""The trainable networks: what is stored means the same in torch as in the package (torch is no part of development).

``training/requirements.txt`` has torch; without it these tests are left out.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import spicegraph_parser
from spicegraph_parser.caption_pipeline.encoder import Encoder, Vocabulary, read_weights
from spicegraph_parser.caption_pipeline.layout import Layout
from spicegraph_scenes import SCENE_WEIGHTS

if TYPE_CHECKING:
    from types import ModuleType

torch = pytest.importorskip("torch", reason="torch (6 GB) is not installed")

_TRAINING = Path(__file__).parents[2] / "training"
_PACKAGE = Path(spicegraph_parser.__file__).parent
_CAPTION, _SCENE = _PACKAGE / "en_caption" / "parser", SCENE_WEIGHTS
_WORDS = [
    "Two",
    "dogs",
    "that",
    "are",
    "sitting",
    "near",
    "a",
    "red",
    "bench",
    "watch",
    "a",
    "well-dressed",
    "man",
    ".",
]


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    monkeypatch.syspath_prepend(str(_TRAINING))
    before = set(sys.modules)
    modules = {
        name: importlib.import_module(name) for name in ("export", "network", "scene_network", "teach", "train", "data")
    }
    for name in set(sys.modules) - before:
        if (_TRAINING / f"{name}.py").exists():
            monkeypatch.delitem(sys.modules, name)
    return modules


def _read(folder: Path) -> tuple[dict[str, Any], Vocabulary]:
    lists = json.loads((folder / "vocabulary.json").read_bytes())
    return dict(read_weights((folder / "network.npz").read_bytes())), Vocabulary.from_lists(lists)


def _scene_network(training: dict[str, ModuleType], weights: dict[str, Any], known: Vocabulary) -> Any:
    """Return the trainable form of weights whose styles are mixed (``scene_mean.py``): the first of them has no shift."""
    for layer in (0, 1):
        weights[f"lstm.{layer}.shift"] = weights.pop(f"lstm.{layer}.styles")[1:]
    tables = [weights[f"words.tables.{kind}"] for kind in range(len(known.rows))]
    sizes = len(known.tags), weights["relations"].shape[1]
    scenes = training["scene_network"]
    network = scenes.SceneNetwork(
        [len(own) for own in tables], [own.shape[1] for own in tables], sizes, scenes.shape_of(weights)
    )
    scenes.resume(network, weights)
    return network.eval()


def test_stored_weights_come_back_to_the_byte(training: dict[str, ModuleType]) -> None:
    export = training["export"]
    for folder, matrices in ((_CAPTION, False), (_SCENE, True)):
        weights, known = _read(folder)
        stored = np.load(folder / "network.npz")
        make = training["teach"].network_of if folder == _CAPTION else lambda *own: _scene_network(training, *own)
        made = export.compact(export.arrays(make(weights, known)), matrices=matrices)
        assert len(made) > 40
        for name, values in made.items():
            if not name.endswith((".shift", ".shift.scale")):
                assert values.dtype == stored[name].dtype
                assert np.array_equal(values, stored[name]), name
        others = ("reranker.", "lstm.0.styles", "lstm.1.styles")
        assert [name for name in stored if name not in made and not name.startswith(others)] == []


@pytest.mark.parametrize(("folder", "style"), [(_CAPTION, 0), (_SCENE, 0), (_SCENE, 1), (_SCENE, 2)])
def test_torch_answers_as_the_package_does(training: dict[str, ModuleType], folder: Path, style: int) -> None:
    weights, known = _read(folder)
    encoder, layout = Encoder(weights, known), Layout.of(np.array([len(_WORDS)]))
    first = encoder.first(encoder.words(_WORDS, np.full(len(_WORDS), style)), layout)
    second = encoder.second(first, layout)
    network = (
        training["teach"].network_of(weights, known) if folder == _CAPTION else _scene_network(training, weights, known)
    )
    codes = torch.tensor([known.feature_rows(word) for word in _WORDS])
    with torch.no_grad():
        states, tags = network.encoder(codes, torch.arange(len(_WORDS))[None], style)
    np.testing.assert_allclose(states[:, 0].numpy(), second.states, atol=1e-5)
    np.testing.assert_allclose(tags[:, 0].numpy(), first.tags, rtol=1e-5, atol=1e-4)


def test_a_small_network_learns_its_sentences_by_heart(training: dict[str, ModuleType]) -> None:
    network, train, data = (training[name] for name in ("network", "train", "data"))
    torch.manual_seed(1)
    random = np.random.default_rng(1)
    rows, tags, labels = [9, 5, 5, 5, 5, 3], 4, 3
    codes = torch.from_numpy(np.stack([random.integers(0, count, 8) for count in rows], axis=1))
    shape = network.Shape(word=16, first=12, second=10, arc=16, label=16, dropout=0.0)
    own = network.Network(rows, tags, labels, shape)
    words, heads = torch.from_numpy(random.integers(0, 8, (6, 5))), torch.from_numpy(random.integers(0, 6, (6, 5)))
    parsed = data.Encoded(words, words % tags, heads, words % labels)
    schedule = train.Schedule(
        seed=1, batch=30, rates=[(0, 2e-2), (6_000, 0.0)], warm_up=5, decay=0.99, clip=5.0, save=10**9, unknown=0.0
    )
    before = train.agreement(own, codes, {5: parsed})
    assert list(train.fit(own, torch.cat([codes, codes]), [(1.0, {5: parsed})], torch.zeros(8), schedule)) == []
    after = train.agreement(own, codes, {5: parsed})
    assert before["las"] < 50 < 90 < after["las"]
    assert all(not bias.any() for layer in own.encoder.layers for bias in (layer.bias_hh_l0, layer.bias_hh_l0_reverse))
