"""What a server answers to requests to score, in the form of the library's results; ``None`` is undefined."""
# In messages an undefined score reads as 0.0 unless ``HasField`` is asked.

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from spicegraph_api.v1 import evaluation_service_pb2 as evaluation
from spicegraph_api.v1 import scores_pb2
from spicegraph_service.client.inputs import values_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

Message: TypeAlias = evaluation.ScoreResponse | evaluation.ScoreStreamResponse


@dataclass(frozen=True, slots=True)
class _Scored:
    """Scores by name; other fields of the message (``matches``, ``breakdowns`` ...) are read as they are."""

    message: Any

    @property
    def scores(self) -> dict[str, float | None]:
        """Each score by its name, categories as ``SPICE_Color``."""
        return values_of(self.message.scores)

    def __getitem__(self, name: str) -> float | None:
        """Return a score by its name."""
        scores = self.scores
        if name not in scores:
            raise KeyError(f"there is no score {name!a} here; the scores are {', '.join(scores)}")
        return scores[name]

    def __getattr__(self, name: str) -> Any:
        """Return another field of the message."""
        return getattr(object.__getattribute__(self, "message"), name)


@dataclass(frozen=True, slots=True)
class ItemReply(_Scored):
    """What came back for one item."""

    message: scores_pb2.ItemResult

    @property
    def id(self) -> str:
        """The item's id, as it was sent."""
        return self.message.id


@dataclass(frozen=True, slots=True)
class CorpusReply(_Scored):
    """What came back for all items together."""

    message: scores_pb2.CorpusResult

    @property
    def warnings(self) -> tuple[str, ...]:
        """What users should know of the result, in sentences."""
        return tuple(self.message.warnings)

    @property
    def confidence(self) -> dict[str, dict[str, float | None]]:
        """The 95 % interval of every score by its name; empty if not asked for."""
        ends = ((score.name, score.interval) for score in self.message.scores if score.HasField("interval"))
        return {
            name: {end: getattr(bounds, end) if bounds.HasField(end) else None for end in ("low", "high")}
            for name, bounds in ends
        }

    @property
    def signature(self) -> dict[str, dict[str, str]]:
        """What must be equal for two numbers to be comparable, by metric."""
        return {signature.metric: dict(signature.fields) for signature in self.message.signatures}


@dataclass(frozen=True, slots=True, repr=False)
class ScoreReply:
    """The scores of items and of all together: ``reply["SPICE"]``, ``reply.items[0]["SPICE"]``, ``reply.to_frame()``.

    Of a stream, a part of it: the corpus has no scores but in the last.
    """

    message: Message

    @property
    def items(self) -> tuple[ItemReply, ...]:
        """The items, in the order of the request; those of a stream as they come."""
        return tuple(map(ItemReply, self.message.items))

    @property
    def corpus(self) -> CorpusReply:
        """All items together."""
        return CorpusReply(self.message.corpus)

    def __getitem__(self, name: str) -> float | None:
        """Return a corpus score by its name."""
        return self.corpus[name]

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self.message.items)

    def __iter__(self) -> Iterator[ItemReply]:
        """Yield the items."""
        return iter(self.items)

    def __repr__(self) -> str:
        """Return a table of the corpus scores, as of a result of the library."""
        every = self.corpus.scores
        shown = {name: value for name, value in every.items() if not any(name.startswith(f"{n}_") for n in every)}
        width = max(map(len, shown), default=0)
        values = ("undefined" if value is None else f"{value:.4f}" for value in shown.values())
        lines = (f"  {name:{width}}  {value:>9}" for name, value in zip(shown, values, strict=True))
        return "\n".join([f"Reply of {len(self)} item{'s' if len(self) != 1 else ''}", *lines])

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values: ``signature``, ``corpus`` and ``items``, and ``warnings`` where there are any."""
        corpus = self.corpus
        warned = {"warnings": list(corpus.warnings)} if corpus.warnings else {}
        items = [{"image_id": item.id, "scores": item.scores} for item in self]
        return {"signature": corpus.signature, "corpus": corpus.scores, **warned, "items": items}

    def to_frame(self) -> pd.DataFrame:
        """Return the items' scores as a table of pandas, a row for each item, by its id."""
        import pandas as pd  # noqa: PLC0415 (not a dependency: whoever has tables has it)

        index = pd.Index([item.id for item in self], name="image_id")
        return pd.DataFrame([item.scores for item in self], index=index, dtype=float)
