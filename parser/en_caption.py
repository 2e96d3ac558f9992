"""The name under which spaCy finds the bundled pipeline: ``spacy.load("en_caption")``.

The pipeline is :mod:`spicegraph_parser.en_caption`. spaCy loads names that the installer knows, so that the wheel has
metadata of this one (``en_caption.pkginfo``), too.
"""

import sys

from spicegraph_parser import en_caption

sys.modules[__name__] = en_caption
