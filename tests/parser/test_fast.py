"""The extra ``fast``: products in whole numbers, which no company and no order of sums can change."""

from __future__ import annotations

import gzip
import json
import pickle
import sys
from importlib import import_module
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spicegraph_parser.errors import DataError
from spicegraph_parser.pipelines import RUNTIMES, load_pipeline

pytest.importorskip("onnxruntime")
_MODULE = "spicegraph_parser.caption_pipeline.integers"
IntegerProduct = import_module(_MODULE).IntegerProduct
_GOLDEN = Path(__file__).parents[1] / "golden" / "spice" / "spice_parses.jsonl.gz"


def _weights(width: int, columns: int, *, large: int = 0) -> np.ndarray:
    weights = np.random.default_rng(width).standard_normal((width, columns)).astype(np.float32)
    weights[:large] *= 20
    return weights


def _values(rows: int, width: int) -> np.ndarray:
    """Return values as states have them, some at the ends and a few beyond."""
    values = np.tanh(np.random.default_rng(rows).standard_normal((rows, width)) * 2).astype(np.float32)
    values.flat[-4:] = 1, -1, 1.5, 0
    return values


def _by_numpy(product: IntegerProduct, values: np.ndarray) -> np.ndarray:
    """Compute a product from its definition, in whole numbers of 64 bits."""
    clipped = values.clip(-1, 1)
    first = np.rint(clipped * np.float32(64))
    second = np.rint((clipped - first / np.float32(64)) * np.float32(1024))
    total = np.float32(0)
    for in_steps, steps, rows in product.parts:
        digits = np.concatenate([first[:, rows], second[:, rows]], axis=1).astype(np.int64)
        numbers = np.concatenate([in_steps, np.rint(in_steps / 16)]).astype(np.int64)
        total = total + (digits @ numbers).astype(np.float32) * (steps / np.float32(64))
    return total


@pytest.mark.parametrize(("rows", "width", "columns"), [(1, 160, 640), (37, 365, 48), (256, 33, 7)])
@pytest.mark.parametrize("large", [0, 5])
def test_the_product_is_that_of_whole_numbers_to_the_last_bit(rows: int, width: int, columns: int, large: int) -> None:
    weights, values = _weights(width, columns, large=large), _values(rows, width)
    product = IntegerProduct(weights)
    assert [len(numbers) for numbers, _, _ in product.parts] == ([width, large] if large else [width])
    assert np.array_equal(product(values), _by_numpy(product, values))
    assert np.abs(product(values) - values.clip(-1, 1) @ weights).max() < 0.02 * np.abs(weights).max() * width**0.5


def test_two_products_fit_16_bits() -> None:
    """Where a processor lacks instructions for 8 bits, it adds two products in 16: they must not be cut off."""
    weights = np.array([[1.0, -1.0], [1.0, -1.0], [0.0, 0.5]], dtype=np.float32)
    product = IntegerProduct(weights)
    assert np.abs(product.parts[0][0].astype(int)).max() == 127
    assert 2 * 128 * 127 < 2**15
    ends = np.array([[1, 1, 1], [-1, -1, -1]], dtype=np.float32)
    assert np.array_equal(product(ends), _by_numpy(product, ends))


@given(st.permutations(range(40)), st.integers(1, 40))
def test_a_row_does_not_depend_on_its_company(order: list[int], size: int) -> None:
    product = IntegerProduct(_weights(64, 24, large=3))
    values = _values(40, 64)
    together = product(values)
    assert np.array_equal(product(values[order[:size]]), together[order[:size]])


def test_a_product_goes_to_another_process() -> None:
    product = IntegerProduct(_weights(12, 6))
    values = _values(5, 12)
    assert np.array_equal(pickle.loads(pickle.dumps(product))(values), product(values))


@pytest.mark.model
def test_captions_have_nearly_the_facts_of_floats() -> None:
    """The model card says in how many captions they differ; a caption's facts are the same alone and with others."""
    with gzip.open(_GOLDEN, "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in islice(lines, 400)]
    fast, floats = load_pipeline("en_caption+fast"), load_pipeline()
    facts = [caption.facts for caption in fast.captions(texts)]
    same = sum(ours == caption.facts for ours, caption in zip(facts, floats.captions(texts), strict=True))
    assert same >= 395
    assert [caption.facts for caption in fast.captions(texts[:60], batch_size=1)] == facts[:60]
    assert [caption.facts for caption in fast.captions(texts[::-1], batch_size=150)] == facts[::-1]
    assert fast.signature == f"{floats.signature}+fast"


def test_without_the_extra_the_message_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, _MODULE)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(DataError, match=r"'en_caption\+fast' needs onnxruntime.*pip install 'spicegraph\[fast\]'"):
        load_pipeline("en_caption+fast")


@pytest.mark.parametrize("name", ["en_caption+quick", "en_caption+"])
def test_an_unknown_runtime_is_named(name: str) -> None:
    with pytest.raises(DataError, match=r"unknown runtime '\w*' \(known: .*fast"):
        load_pipeline(name)


@pytest.mark.model
def test_a_runtime_is_a_line_of_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RUNTIMES, "twin", "spicegraph_parser.caption_pipeline.encoder:float_product")
    twin = load_pipeline("en_caption+twin")
    assert twin.signature.endswith("+twin")
    assert [caption.facts for caption in twin.captions(["a dog runs"])] == [
        caption.facts for caption in load_pipeline().captions(["a dog runs"])
    ]
