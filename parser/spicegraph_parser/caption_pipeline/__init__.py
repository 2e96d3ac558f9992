"""The bundled caption pipeline: a spaCy pipeline that parses captions as SPICE's reference parser does.

``components`` holds what spaCy sees; the network itself is plain numpy. The trained files are package data,
in ``en_caption`` beside this package.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

__all__ = ["choose_kernels", "pipeline_path"]

_CORETYPE: Final = "OPENBLAS_CORETYPE"
_WIDE: Final = frozenset(["avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512cd"])
_CPUINFO: Final = Path("/proc/cpuinfo")


def pipeline_path() -> Path:
    """Return the folder of the bundled pipeline, which plain spaCy can load.

    >>> import spacy
    >>> [token.tag_ for token in spacy.load(pipeline_path())("A dog sleeps.")]
    ['DT', 'NN', 'VBZ', '.']
    """
    return Path(__file__).parent.parent / "en_caption"


def choose_kernels(cpuinfo: Path = _CPUINFO) -> None:
    """Let numpy use AVX-512 on AMD processors that have it. For the start of a program, before numpy is imported.

    The OpenBLAS of numpy's wheels (0.3.31 is) does not know all of these processors, and then takes its products for
    Haswell, which the network waits for nearly twice as long. Parses stay the same; products' last bits may differ.
    Nothing changes where numpy is loaded, the environment names the kernels (``OPENBLAS_CORETYPE``), or the processor
    is another one.

    Args:
        cpuinfo: where Linux describes the processor; missing on other systems.
    """
    if "numpy" in sys.modules or _CORETYPE in os.environ or not cpuinfo.exists():
        return
    with cpuinfo.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            name, _, value = line.partition(":")
            if name.strip() == "vendor_id" and value.strip() != "AuthenticAMD":
                return
            if name.strip() == "flags":  # behind the vendor; those of the first core
                if _WIDE.issubset(value.split()):
                    os.environ[_CORETYPE] = "SkylakeX"
                return
