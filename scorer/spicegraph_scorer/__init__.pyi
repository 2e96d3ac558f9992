"""The names of the library by the module that has them: what type checkers read, and ``__init__.py`` at run time."""

from spicegraph_scorer.core.credit import Credit as Credit
from spicegraph_scorer.core.data import MetricData as MetricData
from spicegraph_scorer.core.facts import FactCache as FactCache
from spicegraph_scorer.core.facts import FactSource as FactSource
from spicegraph_scorer.core.items import Item as Item
from spicegraph_scorer.core.metric import Metric as Metric
from spicegraph_scorer.core.metric import Needs as Needs
from spicegraph_scorer.core.metric import Score as Score
from spicegraph_scorer.core.ngrams import DocumentFrequencies as DocumentFrequencies
from spicegraph_scorer.core.results import Result as Result
from spicegraph_scorer.core.results import Run as Run
from spicegraph_scorer.core.significance import Resampling as Resampling
from spicegraph_scorer.core.tokens import Corpus as Corpus
from spicegraph_scorer.metrics import METRICS as METRICS
from spicegraph_scorer.metrics.graded.vectors import Vectors as Vectors
from spicegraph_scorer.metrics.graded.vectors import VectorTable as VectorTable
from spicegraph_scorer.metrics.spice.categories import (
    CategoryDefinition as CategoryDefinition,
)
from spicegraph_scorer.metrics.spice.categories import (
    make_categories as make_categories,
)
from spicegraph_scorer.metrics.spice.categories import (
    read_categories as read_categories,
)
from spicegraph_scorer.metrics.spice.metric import TupleResult as TupleResult
from spicegraph_scorer.metrics.spice.metric import score_tuples as score_tuples
from spicegraph_scorer.readers import Dataset as Dataset
from spicegraph_scorer.readers import read_items as read_items
from spicegraph_scorer.readers.parses import read_parses as read_parses
from spicegraph_scorer.scoring import (
    SystemComparison as SystemComparison,
)
from spicegraph_scorer.scoring import (
    choose_best as choose_best,
)
from spicegraph_scorer.scoring import (
    compare_systems as compare_systems,
)
from spicegraph_scorer.scoring import (
    credit as credit,
)
from spicegraph_scorer.scoring import (
    score as score,
)
from spicegraph_scorer.scoring import (
    score_captions as score_captions,
)
