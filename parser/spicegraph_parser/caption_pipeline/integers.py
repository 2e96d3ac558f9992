"""The runtime ``fast``: the large products of a network in whole numbers of 8 bits, by ONNX Runtime.

What a product reads are states of an LSTM and probabilities. They lie between -1 and 1, so that fixed steps turn them
into whole numbers, here of two digits: in steps of 1/64, and of 1/16 of those. Weights get a step for each column
(Jacob et al. 2018, "Quantization and training of neural networks for efficient integer-arithmetic-only inference",
section 2.1). Sums of whole numbers are exact: a row's result depends neither on the rows beside it nor on the
instructions that a processor has. Scales that are measured on a batch, as ONNX Runtime's own 8-bit LSTM has them, would
make an answer depend on its company.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import onnxruntime

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from spicegraph_parser.caption_pipeline.layout import Floats, Integers

# Where a processor lacks VNNI, two products of an unsigned and a signed byte are added in 16 bits: 2 * 128 * 127 fits.
_LEVELS: Final = 127  # of a weight, to either side
_DIGITS: Final = 64  # steps of the first digit, to either side; of the second one half a base
_BASE: Final = 16
_VALUES_AT_ONCE: Final = 1 << 18  # of a result: more no longer fit a core's own cache

# An ONNX model is a protocol buffer (onnx.proto). The few fields that are needed here are written by hand: the package
# that writes any model is as large as the runtime itself.
_Field: TypeAlias = "tuple[int, int | str | bytes | Sequence[_Field]]"
_FLOAT, _UINT8, _INT8, _INT64, _INTEGER = 1, 2, 3, 7, 2  # TensorProto.DataType, and AttributeProto.AttributeType
_TYPES: Final = {"f4": _FLOAT, "u1": _UINT8, "i1": _INT8, "i8": _INT64}
_IR_VERSION, _OPERATORS = 8, 13  # of ONNX 1.10; later runtimes read them too


class IntegerProduct:
    """A product with weights (width, columns) as whole numbers; see :class:`.encoder.Product`."""

    # Rows of weights that are far larger than most, those of the tags' probabilities, have steps of their own: they
    # would leave few to the others (Dettmers et al. 2022, "LLM.int8()", section 3.2).

    def __init__(self, weights: Floats) -> None:
        self._weights = weights
        size = np.abs(weights).max(axis=1)
        is_large = size > 3.0 * np.median(size)
        # All rows, with 0 in large ones; large rows, where there are any: their products add up. A part is numbers
        # (rows, columns) in steps, the step of each column, and which of the rows these are.
        self.parts = [(*_rounded(np.where(is_large[:, None], np.float32(0.0), weights)), np.arange(len(weights)))]
        if is_large.any():
            self.parts.append((*_rounded(weights[is_large]), np.flatnonzero(is_large)))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        model = _model(self.parts, *weights.shape)
        self._run = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run
        self._at_once = max(1, _VALUES_AT_ONCE // weights.shape[1])

    def __call__(self, rows: Floats, out: Floats | None = None, /) -> Floats:
        """Return (rows, columns); values beyond -1 and 1 count as these."""
        size = self._at_once
        if len(rows) <= size:
            whole: Floats = self._run(None, {"rows": rows})[0]
            return whole
        results = np.empty((len(rows), self._weights.shape[1]), dtype=np.float32) if out is None else out
        for start in range(0, len(rows), size):
            results[start : start + size] = self._run(None, {"rows": rows[start : start + size]})[0]
        return results

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._weights,)


def _rounded(weights: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Return weights (rows, columns) in steps, and the step of each column."""
    steps = np.maximum(np.abs(weights).max(axis=0) / np.float32(_LEVELS), np.finfo(np.float32).tiny)
    return np.rint(weights / steps).astype(np.int8), steps


def _model(parts: Sequence[tuple[NDArray[np.int8], Floats, Integers]], width: int, columns: int) -> bytes:
    """Return the model that makes ``product`` (rows, columns) of ``rows`` (rows, width)."""
    step = np.float32(1 / _DIGITS)
    constants: dict[str, NDArray[Any]] = {
        "least": np.asarray(-1, dtype=np.float32),
        "most": np.asarray(1, dtype=np.float32),
        "zero": np.asarray(_DIGITS, dtype=np.uint8),
        "first step": np.asarray(step),
        "second step": np.asarray(step / np.float32(_BASE)),
    }
    nodes = [
        _node("Clip", ["rows", "least", "most"], "values"),
        _node("QuantizeLinear", ["values", "first step", "zero"], "first"),
        _node("DequantizeLinear", ["first", "first step", "zero"], "whole"),
        _node("Sub", ["values", "whole"], "rest"),
        _node("QuantizeLinear", ["rest", "second step", "zero"], "second"),
        _node("Concat", ["first", "second"], "digits", axis=1),
    ]
    for number, (numbers, steps, rows) in enumerate(parts):
        # By the numbers the first digits are multiplied, by these over the base the second ones.
        of_digits = np.concatenate([numbers, np.rint(numbers / np.float32(_BASE)).astype(np.int8)])
        constants |= {f"numbers {number}": of_digits, f"steps {number}": step * steps}
        digits = "digits"
        if number:
            digits, constants["large"] = "large digits", np.concatenate([rows, rows + width]).astype(np.int64)
            nodes.append(_node("Gather", ["digits", "large"], digits, axis=1))
        nodes += [
            _node("MatMulInteger", [digits, f"numbers {number}", "zero"], f"sums {number}"),
            _node("Cast", [f"sums {number}"], f"floats {number}", to=_FLOAT),
            _node("Mul", [f"floats {number}", f"steps {number}"], f"product {number}"),
        ]
    if len(parts) == 2:
        nodes.append(_node("Add", ["product 0", "product 1"], "total"))
    tensors: list[list[_Field]] = []
    for name, values in constants.items():
        data = values.astype(values.dtype.newbyteorder("<")).tobytes()
        tensors.append([*[(1, size) for size in values.shape], (2, _TYPES[values.dtype.str[1:]]), (8, name), (9, data)])
    graph: list[_Field] = [
        (2, "product"),
        *[(1, node) for node in nodes],
        *[(5, tensor) for tensor in tensors],
        (11, _matrix("rows", width)),
        (12, _matrix("product 0" if len(parts) == 1 else "total", columns)),
    ]
    return _message([(1, _IR_VERSION), (7, graph), (8, [(1, ""), (2, _OPERATORS)])])


def _node(operator: str, inputs: Sequence[str], output: str, **attributes: int) -> list[_Field]:
    numbers: list[_Field] = [(5, [(1, name), (3, value), (20, _INTEGER)]) for name, value in attributes.items()]
    return [*[(1, name) for name in inputs], (2, output), (4, operator), *numbers]


def _matrix(name: str, columns: int) -> list[_Field]:
    """Return ONNX's description of a float matrix with any number of rows, input or output."""
    shape: list[_Field] = [(1, [(2, "n")]), (1, [(1, columns)])]
    return [(1, name), (2, [(1, [(1, _FLOAT), (2, shape)])])]


def _message(fields: Iterable[_Field]) -> bytes:
    """Return the bytes of a message of a protocol buffer, from the numbers and values of its fields."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += _varint(number << 3) + _varint(value)
        else:
            data = value.encode() if isinstance(value, str) else value if isinstance(value, bytes) else _message(value)
            out += _varint(number << 3 | 2) + _varint(len(data)) + data
    return out


def _varint(value: int) -> bytes:
    """Return a number in groups of 7 bits, the lowest first; all but the last have the highest bit set."""
    return bytes([value & 127 | 128, *_varint(value >> 7)]) if value > 127 else bytes([value])
