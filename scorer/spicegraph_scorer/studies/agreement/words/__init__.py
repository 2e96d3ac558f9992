"""Human agreement on words: who else uses the word that one person uses, and how a system compares.

Source: Chen et al. 2015, "Microsoft COCO Captions: Data Collection and Evaluation Server", section 4.2.
"""

from spicegraph_scorer.studies.agreement.words.counts import (
    WORD_CLASSES,
    Vocabulary,
    WordTable,
    count_words,
    tagged_words,
)
from spicegraph_scorer.studies.agreement.words.model import Fit, Point, expected_point, fit, observed_point
from spicegraph_scorer.studies.agreement.words.study import (
    ClassAgreement,
    SystemWords,
    WordAgreement,
    WordStudy,
    study_words,
)

__all__ = [
    "WORD_CLASSES",
    "ClassAgreement",
    "Fit",
    "Point",
    "SystemWords",
    "Vocabulary",
    "WordAgreement",
    "WordStudy",
    "WordTable",
    "count_words",
    "expected_point",
    "fit",
    "observed_point",
    "study_words",
    "tagged_words",
]
