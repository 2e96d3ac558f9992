"""The table behind SPICE-G: a vector and a weight for each word, learned from captions of the same images.

It may also know which words follow which in these captions.
"""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from spicegraph_parser.errors import DataError
from spicegraph_scorer.metrics.graded.order import WordOrder

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Floats", "VectorTable", "load_table"]

Floats = npt.NDArray[np.float32]

_FORMAT: Final = 2
_DIGEST_CHARACTERS: Final = 8
_NO_ORDER: Final = WordOrder((), np.zeros((0, 0), np.int8))
_LOWEST_IDF, _HIGHEST_IDF = 0.1, 7.0


@dataclass(frozen=True, slots=True, eq=False)
class VectorTable:
    """Words with their vectors and the number of images whose captions have them.

    ``vectors`` has a row of 8-bit numbers for each word; only a row's direction means something. Without ``order``,
    the order of a candidate's words costs nothing.
    """

    name: str
    images: int
    words: tuple[str, ...]
    image_counts: npt.NDArray[np.int32]
    vectors: npt.NDArray[np.int8]
    order: WordOrder | None = None

    @property
    def signature(self) -> str:
        """Name and a hash of the contents, such as ``coco-train2014-1a2b3c4d``."""
        contents = hashlib.sha256("\n".join([self.name, str(self.images), *self.words]).encode())
        contents.update(self.image_counts.astype("<i4").tobytes())
        contents.update(self.vectors.tobytes())
        if self.order is not None:
            contents.update("\n".join(self.order.kinds).encode())
            contents.update(self.order.information.tobytes())
        return f"{self.name}-{contents.hexdigest()[:_DIGEST_CHARACTERS]}"

    def directions(self) -> Floats:
        """Return the vectors at length 1."""
        rows = self.vectors.astype(np.float32)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        directions: Floats = rows / np.maximum(lengths, 1)
        return directions

    def idf(self) -> Floats:
        """Return each word's log of (images / images with the word), between 0.1 and 7."""
        idf: Floats = np.clip(np.log(self.images / self.image_counts), _LOWEST_IDF, _HIGHEST_IDF).astype(np.float32)
        return idf

    def write(self, path: Path) -> None:
        """Write the table to a file (numpy's compressed ``.npz``).

        Raises:
            OSError: the file cannot be written.
        """
        header = "\n".join([str(_FORMAT), self.name, str(self.images)])
        order = self.order or _NO_ORDER
        with path.open("wb") as file:
            np.savez_compressed(
                file,
                allow_pickle=False,
                header=np.frombuffer(header.encode(), np.uint8),
                words=np.frombuffer("\n".join(self.words).encode(), np.uint8),
                image_counts=self.image_counts,
                vectors=self.vectors,
                kinds=np.frombuffer("\n".join(order.kinds).encode(), np.uint8),
                information=order.information,
            )

    @classmethod
    def read(cls, path: Path) -> VectorTable:
        """Read what :meth:`write` wrote.

        Raises:
            DataError: the file is missing, or is no table of vectors.
        """
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                file_format, name, images = arrays["header"].tobytes().decode().split("\n")
                words = tuple(arrays["words"].tobytes().decode().split("\n"))
                order = _order(arrays["kinds"].tobytes().decode(), arrays["information"])
                table = cls(name, int(images), words, arrays["image_counts"], arrays["vectors"], order)
        except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is something else"
            raise DataError(f"{path}: cannot be read as a table of vectors ({reason})") from error
        if int(file_format) != _FORMAT or not _is_sound(table):
            raise DataError(f"{path}: a table of vectors of another version, or damaged; build it again")
        return table


def _order(kinds: str, information: npt.NDArray[np.int8]) -> WordOrder | None:
    """Return the word order of a file, if it has one.

    Raises:
        ValueError: it is damaged.
    """
    if not information.size:
        return None
    names = tuple(kinds.split("\n"))
    if information.dtype != np.int8 or information.shape != (len(names), len(names)) or not {"", "-"} <= set(names):
        raise ValueError("no word order")
    return WordOrder(names, information)


def _is_sound(table: VectorTable) -> bool:
    return (
        table.vectors.ndim == 2
        and table.vectors.dtype == np.int8
        and table.image_counts.dtype == np.int32
        and table.image_counts.shape == (len(table.words),) == table.vectors.shape[:1]
        and bool(((table.image_counts > 0) & (table.image_counts <= table.images)).all())
    )


@lru_cache(maxsize=1)
def load_table() -> VectorTable:
    """Return the bundled table, from the captions of COCO train2014; read once per process.

    Raises:
        DataError: it is missing or damaged.
    """
    with as_file(files("spicegraph_scorer") / "metrics" / "graded" / "data" / "coco_train2014.npz") as path:
        return VectorTable.read(path)
