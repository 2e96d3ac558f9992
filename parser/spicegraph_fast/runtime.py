"""The large products of a network in whole numbers of 8 bits, by ONNX Runtime.

What a product reads are states of an LSTM and probabilities. They lie between -1 and 1, so that fixed steps turn them
into whole numbers, here of two digits: in steps of 1/64, and of 1/16 of those. Weights get a step for each column
(Jacob et al. 2018, "Quantization and training of neural networks for efficient integer-arithmetic-only inference",
section 2.1). Sums of whole numbers are exact: a row's result depends neither on the rows beside it nor on the
instructions that a processor has. Scales that are measured on a batch, as ONNX Runtime's own 8-bit LSTM has them, would
make an answer depend on its company.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeAlias

import numpy as np
import onnxruntime

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from spicegraph_parser.caption_pipeline.layout import Floats

# Where a processor lacks VNNI, two products of an unsigned and a signed byte are added in 16 bits: 2 * 128 * 127 fits.
_LEVELS: Final = 127  # of a weight, to either side
_DIGITS: Final = 64  # steps of the first digit, to either side; of the second one half a base
_BASE: Final = 16
_VALUES_AT_ONCE: Final = 1 << 18  # of a result: more no longer fit a core's own cache
_FAR_LARGER: Final = 3.0  # than the median row


class IntegerProduct:
    """A product with weights as whole numbers; see :class:`spicegraph_parser.caption_pipeline.encoder.Product`.

    Rows of weights that are far larger than most, those of the tags' probabilities, have steps of their own: they would
    leave few to the others (Dettmers et al. 2022, "LLM.int8()", section 3.2).

    Args:
        weights: (width, columns).

    Attributes:
        parts: all rows, with 0 in large ones; large rows, where there are any. Their products add up.
    """

    def __init__(self, weights: Floats) -> None:
        self._weights = weights
        size = np.abs(weights).max(axis=1)
        is_large = size > _FAR_LARGER * np.median(size)
        self.parts = [IntegerWeights.of(np.where(is_large[:, None], np.float32(0.0), weights), None)]
        if is_large.any():
            self.parts.append(IntegerWeights.of(weights[is_large], np.flatnonzero(is_large)))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        model = _model(self.parts, *weights.shape)
        self._run = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run
        self._at_once = max(1, _VALUES_AT_ONCE // weights.shape[1])

    def __call__(self, rows: Floats, _out: Floats | None = None, /) -> Floats:
        """Return (rows, columns); values beyond -1 and 1 count as these."""
        size = self._at_once
        if len(rows) <= size:
            whole: Floats = self._run(None, {"rows": rows})[0]
            return whole
        results = np.empty((len(rows), self._weights.shape[1]), dtype=np.float32)
        for start in range(0, len(rows), size):
            results[start : start + size] = self._run(None, {"rows": rows[start : start + size]})[0]
        return results

    def __reduce__(self) -> tuple[object, ...]:
        """Return what another process makes it from."""
        return type(self), (self._weights,)


class IntegerWeights(NamedTuple):
    """Weights as whole numbers.

    Attributes:
        numbers: (rows, columns) in steps.
        steps: (columns,) the step of each column.
        rows: (rows,) which ones of a product's rows these are; all of them if it is ``None``.
    """

    numbers: NDArray[np.int8]
    steps: Floats
    rows: NDArray[np.int64] | None

    @classmethod
    def of(cls, weights: Floats, rows: NDArray[np.int64] | None) -> Self:
        """Round weights (rows, columns)."""
        steps = np.maximum(np.abs(weights).max(axis=0) / np.float32(_LEVELS), np.finfo(np.float32).tiny)
        return cls(np.rint(weights / steps).astype(np.int8), steps, rows)

    @property
    def of_digits(self) -> NDArray[np.int8]:
        """The numbers (2 * rows, columns) by which the first digits are multiplied, then those of the second ones."""
        return np.concatenate([self.numbers, np.rint(self.numbers / np.float32(_BASE)).astype(np.int8)])


# An ONNX model is a protocol buffer (onnx.proto). The few fields that are needed here are written by hand: the package
# that writes any model is as large as the runtime itself.
_Field: TypeAlias = "tuple[int, int | str | bytes | Sequence[_Field]]"
_FLOAT, _UINT8, _INT8, _INT64, _INTEGER = 1, 2, 3, 7, 2  # TensorProto.DataType, and AttributeProto.AttributeType
_IR_VERSION, _OPERATORS = 8, 13  # of ONNX 1.10; later runtimes read them too


def _model(parts: Sequence[IntegerWeights], width: int, columns: int) -> bytes:
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
        _node("Concat", ["first", "second"], "digits", _attribute("axis", 1)),
    ]
    for part, number in zip(parts, ("", " 2"), strict=False):
        constants |= {f"numbers{number}": part.of_digits, f"steps{number}": step * part.steps}
        if part.rows is not None:
            constants["rows 2"] = np.concatenate([part.rows, part.rows + width])
            nodes.append(_node("Gather", ["digits", "rows 2"], "digits 2", _attribute("axis", 1)))
        nodes += [
            _node("MatMulInteger", [f"digits{number}", f"numbers{number}", "zero"], f"sums{number}"),
            _node("Cast", [f"sums{number}"], f"floats{number}", _attribute("to", _FLOAT)),
            _node("Mul", [f"floats{number}", f"steps{number}"], f"product{number}"),
        ]
    if len(parts) == 2:
        nodes.append(_node("Add", ["product", "product 2"], "total"))
    graph: list[_Field] = [
        (2, "product"),
        *[(1, node) for node in nodes],
        *[(5, _tensor(name, values)) for name, values in constants.items()],
        (11, _matrix("rows", width)),
        (12, _matrix("product" if len(parts) == 1 else "total", columns)),
    ]
    return _message([(1, _IR_VERSION), (7, graph), (8, [(1, ""), (2, _OPERATORS)])])


def _attribute(name: str, value: int) -> _Field:
    return 5, [(1, name), (3, value), (20, _INTEGER)]


def _node(operator: str, inputs: Sequence[str], output: str, *attributes: _Field) -> list[_Field]:
    return [*[(1, name) for name in inputs], (2, output), (4, operator), *attributes]


def _tensor(name: str, values: NDArray[Any]) -> list[_Field]:
    kind = {"f4": _FLOAT, "u1": _UINT8, "i1": _INT8, "i8": _INT64}[values.dtype.str[1:]]
    data = values.astype(values.dtype.newbyteorder("<")).tobytes()
    return [*[(1, size) for size in values.shape], (2, kind), (8, name), (9, data)]


def _matrix(name: str, columns: int) -> list[_Field]:
    """Return what says that a matrix of floats with any number of rows goes in or out."""
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
