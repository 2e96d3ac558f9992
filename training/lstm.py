"""A bidirectional LSTM layer that trains fast on a processor with bfloat16 products.

``torch.nn.LSTM`` takes several times as long on one core with AMX. What is done at each step is in ``lstm.c``, which
is compiled at first use; products with the inputs, and those of all gradients, run over all words at once.
"""

import ctypes
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import torch
from torch import Tensor, nn

FLAGS = ("-O3", "-march=native", "-ffast-math", "-mprefer-vector-width=512", "-shared", "-fPIC")
LOW = torch.bfloat16


@cache
def steps() -> ctypes.CDLL:
    """Return the compiled steps."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "lstm.so"
        subprocess.run(["cc", *FLAGS, str(Path(__file__).with_suffix(".c")), "-o", str(library)], check=True)
        return ctypes.CDLL(str(library))


def places(*tensors: Tensor) -> list[ctypes.c_void_p]:
    """Return where the numbers of tensors lie."""
    return [ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors]


class Recurrence(torch.autograd.Function):
    """Inputs (words, sentences, width) to states (words, sentences, 2 * hidden) of both directions.

    Inside, numbers are (words, 2, sentences, ...): the second direction reads the words from the last one on.
    """

    @staticmethod
    def forward(ctx, inputs, weight, state, bias):  # type: ignore[no-untyped-def,override]
        """Weights are (2, width, 4 * hidden), (2, hidden, 4 * hidden) and (2, 4 * hidden)."""
        words, sentences, width = inputs.shape
        hidden = state.shape[1]
        inputs = inputs.to(LOW)
        read = torch.stack([inputs, inputs.flip(0)]).view(2, -1, width)
        low, inner = weight.to(LOW), state.to(LOW)
        gates = torch.baddbmm(bias.to(LOW).unsqueeze(1), read, low).view(2, words, sentences, -1)
        gates = gates.transpose(0, 1).contiguous()
        states = torch.zeros(words + 1, 2, sentences, hidden, dtype=LOW)
        cells = torch.zeros(words + 1, 2, sentences, hidden)
        product = torch.zeros(2, sentences, 4 * hidden, dtype=LOW)
        for word in range(words):
            if word:
                torch.bmm(states[word], inner, out=product)
            own = places(gates[word], product, cells[word], cells[word + 1], states[word + 1])
            steps().forward(2 * sentences, hidden, *own)
        ctx.save_for_backward(read, low, inner, gates, states, cells)
        return torch.cat([states[1:, 0], states[1:, 1].flip(0)], dim=-1)

    @staticmethod
    def backward(ctx, wanted):  # type: ignore[no-untyped-def,override]
        """Return the slopes at inputs and weights."""
        read, low, inner, gates, states, cells = ctx.saved_tensors
        words, sentences, both = wanted.shape
        hidden = both // 2
        upper = torch.stack([wanted[..., :hidden], wanted[..., hidden:].flip(0)], dim=1).to(LOW)
        back = inner.transpose(1, 2).contiguous()
        slopes = torch.empty_like(gates)
        product = torch.zeros(2, sentences, hidden, dtype=LOW)
        memory = torch.zeros(2, sentences, hidden)
        for word in range(words - 1, -1, -1):
            if word < words - 1:
                torch.bmm(slopes[word + 1], back, out=product)
            own = places(gates[word], cells[word], cells[word + 1], upper[word], product, memory, slopes[word])
            steps().backward(2 * sentences, hidden, *own)
        flat = slopes.transpose(0, 1).reshape(2, -1, 4 * hidden)
        below = torch.bmm(flat, low.transpose(1, 2)).view(2, words, sentences, -1)
        before = states[:-1].transpose(0, 1).reshape(2, -1, hidden)
        return (
            below[0] + below[1].flip(0),
            torch.bmm(read.transpose(1, 2), flat).float(),
            torch.bmm(before.transpose(1, 2), flat).float(),
            flat.sum(dim=1, dtype=torch.float32),
        )


class Lstm(nn.Module):
    """A bidirectional layer; gates in the order input, forget, cell, output."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        bound = hidden**-0.5
        self.weight = nn.Parameter(torch.empty(2, width, 4 * hidden).uniform_(-bound, bound))
        self.state = nn.Parameter(torch.empty(2, hidden, 4 * hidden).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(2, 4 * hidden).uniform_(-bound, bound))

    def forward(self, inputs: Tensor, shift: Tensor | None = None) -> Tensor:
        """Inputs (words, sentences, width) to states (words, sentences, 2 * hidden), forward before backward.

        ``shift``: (2, 4 * hidden), is added to the bias.
        """
        bias = self.bias if shift is None else self.bias + shift
        states: Tensor = Recurrence.apply(inputs, self.weight, self.state, bias).float()
        return states
