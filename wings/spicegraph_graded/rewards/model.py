"""Rewards for training: candidates of images whose references are known, scored again and again."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal, SupportsFloat

from spicegraph_graded.rewards.answers import strip_special_tokens
from spicegraph_graded.rewards.reward import Reward, RewardStatistic, make_reward
from spicegraph_parser.errors import InputError, counted, expect, expect_list, expect_texts, kind_of
from spicegraph_parser.pipelines import DEFAULT_PIPELINE, load_pipeline
from spicegraph_scorer.core.data import MetricData, Resources
from spicegraph_scorer.core.items import Item, ItemId
from spicegraph_scorer.core.ngrams import DocumentFrequencies
from spicegraph_scorer.core.tokens import Corpus, tokenize_texts

if TYPE_CHECKING:
    from spicegraph_parser.spice.rules import Fact
    from spicegraph_scorer.core.credit import Credit
    from spicegraph_scorer.core.facts import FactSource

_IMAGES = 2_000  # whose merged references SPICE keeps
_SMALLEST_DEVIATION = 1e-4
_NAMED = 5

Baseline = Literal["mean", "others"]


class RewardModel:
    """A reward over images with known references: these are parsed once, candidates at each call.

    Threads may share a model: their calls wait for one another.

    Args:
        reward: terms and their weights: ``spice-g=1,cider=.1,length=-.01``; see
            :func:`spicegraph_graded.rewards.reward.parse_reward`.
        references: the references of each image.
        data: what metrics use instead of their own; without document frequencies, CIDEr takes those of ``references``.
        pipeline: what parses, by name or as a value.

    Raises:
        InputError: the reward is faulty, an image has no references, or CIDEr has those of a single image.
        DataError: a pipeline or the data of a metric is not installed.

    Example:
        >>> model = RewardModel("spice=1,length=-.01", {7: ["a brown dog", "a dog on grass"]})
        >>> [round(reward, 3) for reward in model.rewards([7, 7], ["a brown dog", "a cat"])]
        [0.637, -0.02]
    """

    def __init__(
        self,
        reward: str,
        references: Mapping[Any, Sequence[str]],
        *,
        data: MetricData | None = None,
        pipeline: str | FactSource = DEFAULT_PIPELINE,
    ) -> None:
        self.references: dict[ItemId, tuple[str, ...]] = {}
        source = load_pipeline(pipeline) if isinstance(pipeline, str) else pipeline
        self._facts = _Facts(source)
        expect(references, Mapping, "references", "an object {image: [caption, ...]}")
        self._text = reward
        self._data = data or MetricData()
        made = self._made()
        if made.weigh is not None:
            if len(references) < 2:
                raise InputError("CIDEr is undefined with the references of a single image; give document frequencies")
            tokens = map(tokenize_texts, references.values())
            self._data = replace(self._data, frequencies=DocumentFrequencies.from_references(tokens))
            made = self._made()
        self.reward = made  # the mixture itself, a metric
        self.add(references)

    def add(self, references: Mapping[Any, Sequence[str]]) -> None:
        """Add images with their references, or change those of an image; document frequencies stay as they are.

        Raises:
            InputError: an image has no references, or a string in place of a list of them.
        """
        expect(references, Mapping, "references", "an object {image: [caption, ...]}")
        if single := [image for image, texts in references.items() if isinstance(texts, str)]:
            raise InputError(f"{_shown(single)} with a string in place of a list of references")
        references = {image: expect_texts(texts, f"references of {image!r}") for image, texts in references.items()}
        new = {image: tuple(texts) for image, texts in references.items() if self.references.get(image) != tuple(texts)}
        if empty := [image for image, texts in new.items() if not "".join(texts).strip()]:
            raise InputError(f"{_shown(empty)} without references")
        self.references |= new
        self._facts.keep(chain.from_iterable(new.values()))

    def _made(self, *, evidence: bool = False) -> Reward:
        made = Resources(lambda: self._facts, data=self._data, evidence=evidence, images=_IMAGES)
        return make_reward(self._text, made)

    @cached_property
    def _with_evidence(self) -> Reward:
        """The same reward with evidence in its statistics."""
        return self._made(evidence=True)

    def signature(self) -> Mapping[str, str]:
        """Return the reward's signature; rewards with equal signatures are comparable."""
        return self.reward.signature()

    def rewards(
        self, images: Sequence[ItemId], captions: Sequence[str], drafts: Sequence[str] | None = None
    ) -> list[float]:
        """Return the reward of each candidate.

        Args:
            images: the image of each.
            captions: the candidates, whose special tokens are stripped; an empty one scores 0 in every metric.
            drafts: what each revises, for terms of drafts.

        Raises:
            InputError: an image is unknown, the lists differ in length, or drafts are missing.
        """
        statistics = self._statistics(self.reward, self._items(images, captions), drafts)
        values = list(map(self.reward.value, statistics))
        defined = [value for value in values if value is not None]
        if len(defined) < len(values):
            raise InputError(f"caption {values.index(None)}: the reward is undefined, since a score of it is")
        return defined

    def advantages(
        self,
        images: Sequence[ItemId],
        captions: Sequence[str],
        *,
        baseline: Baseline = "mean",
        scaled: bool | None = None,
        drafts: Sequence[str] | None = None,
    ) -> list[float]:
        """Return each candidate's advantage over the others of its image; see :func:`advantages_of`."""
        rewards = self.rewards(images, captions, drafts)
        return advantages_of(rewards, images, baseline=baseline, scaled=scaled)

    def over_greedy(self, images: Sequence[ItemId], captions: Sequence[str], greedy: Mapping[Any, str]) -> list[float]:
        """Return each candidate's reward less that of its image's greedy caption (Rennie et al., CVPR 2017).

        Raises:
            InputError: an image is unknown, or has no greedy caption.
        """
        distinct = list(dict.fromkeys(_images(images)))
        expect(greedy, Mapping, "greedy", "an object {image: caption}")
        if missing := [image for image in distinct if image not in greedy]:
            raise InputError(f"{_shown(missing)} without a greedy caption")
        rewards = self.rewards([*images, *distinct], [*captions, *(greedy[image] for image in distinct)])
        baselines = dict(zip(distinct, rewards[len(images) :], strict=True))
        return [reward - baselines[image] for image, reward in zip(images, rewards, strict=False)]

    def credit(self, images: Sequence[ItemId], captions: Sequence[str]) -> list[Credit]:
        """Divide each candidate's reward among its words; ``Credit.of_tokens`` makes rewards of tokens of it.

        Raises:
            InputError: a term does not divide its score, an image is unknown, or the lists differ in length.
        """
        corpus = self._items(images, captions)
        reward = self._with_evidence
        return reward.credit(corpus, self._statistics(reward, corpus, None))

    def _items(self, images: Sequence[ItemId], captions: Sequence[str]) -> Corpus:
        captions = [strip_special_tokens(text) for text in expect_texts(captions, "captions")]
        images = _images(images)
        if len(images) != len(captions):
            raise InputError(f"{counted(len(images), 'image')} and {counted(len(captions), 'caption')} don't pair up")
        if unknown := [image for image in dict.fromkeys(images) if image not in self.references]:
            raise InputError(f"{_shown(unknown)} unknown: the model has no references of them")
        pairs = zip(images, captions, strict=True)
        return Corpus(tuple([Item(n, text, self.references[image]) for n, (image, text) in enumerate(pairs)]))

    def _statistics(self, reward: Reward, corpus: Corpus, drafts: Sequence[str] | None) -> list[RewardStatistic]:
        with self._facts:
            if drafts is None:
                return reward.collect(corpus)
            drafts = [strip_special_tokens(text) for text in expect_texts(drafts, "drafts")]
            if len(drafts) != len(corpus.items):
                raise InputError(
                    f"{counted(len(corpus.items), 'caption')} and {counted(len(drafts), 'draft')} don't pair up"
                )
            pairs = zip(corpus.items, drafts, strict=True)
            return reward.compare(corpus, Corpus(tuple([replace(item, candidate=text) for item, text in pairs])))


class _Facts:
    """The facts of the references, which stay, and of the captions of a call, which go with it; a call at a time."""

    def __init__(self, source: FactSource) -> None:
        self._one_call = RLock()
        self._source = source
        self._kept: dict[str, tuple[Fact, ...]] = {}
        self._of_call: dict[str, tuple[Fact, ...]] = {}

    @property
    def signature(self) -> str:
        return self._source.signature

    def keep(self, texts: Iterable[str]) -> None:
        with self._one_call:
            new = [text for text in dict.fromkeys(texts) if text not in self._kept]
            self._kept.update(zip(new, self._source.facts(new), strict=True))

    def facts(self, texts: Iterable[str]) -> Iterator[tuple[Fact, ...]]:
        wanted = list(texts)
        new = [text for text in dict.fromkeys(wanted) if text not in self._kept and text not in self._of_call]
        self._of_call.update(zip(new, self._source.facts(new), strict=True))
        return iter([self._kept[text] if text in self._kept else self._of_call[text] for text in wanted])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_one_call"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _one_call=RLock())

    def __enter__(self) -> None:
        self._one_call.acquire()
        self._of_call = {}

    def __exit__(self, *error: object) -> None:
        self._of_call = {}
        self._one_call.release()


def advantages_of(
    rewards: Sequence[float], groups: Sequence[Hashable], *, baseline: Baseline = "mean", scaled: bool | None = None
) -> list[float]:
    """Return by how much each reward is above those of its group.

    ``mean``: less the group's mean and divided by its standard deviation, as in GRPO (Shao et al. 2024; the deviation
    is that of a sample, plus 1e-4); with ``scaled=False`` not divided (Dr. GRPO, Liu et al. 2025). ``others``: less the
    mean of the group's other rewards, not divided (RLOO, Ahmadian et al. 2024). A group of one has no advantage: 0.

    Args:
        rewards: of the candidates.
        groups: the group of each, such as its image.
        baseline: what is taken away.
        scaled: whether to divide; ``None``: with ``mean`` alone.

    Example:
        >>> advantages_of([1.0, 0.0, 5.0], ["a", "a", "b"], baseline="others")
        [1.0, -1.0, 0.0]
    """
    groups = _images(groups, "groups")
    expect_list(rewards, "rewards", "a list of numbers")
    rewards = list(rewards)
    _check_rewards(rewards, groups)
    members: defaultdict[Hashable, list[float]] = defaultdict(list)
    for reward, group in zip(rewards, groups, strict=True):
        members[group].append(reward)
    scale = baseline == "mean" if scaled is None else scaled
    means = {group: math.fsum(group_rewards) / len(group_rewards) for group, group_rewards in members.items()}
    spread = {
        group: statistics.stdev(group_rewards) + _SMALLEST_DEVIATION if scale and len(group_rewards) > 1 else 1.0
        for group, group_rewards in members.items()
    }
    advantages = []
    for reward, group in zip(rewards, groups, strict=True):
        size = len(members[group])
        others = size / (size - 1) if baseline == "others" and size > 1 else 1.0
        advantages.append((reward - means[group]) * others / spread[group])
    return advantages


def _images(images: Any, name: str = "images") -> list[Any]:
    """Return ids that can be looked up."""
    expect_list(images, name)
    checked = list(images)
    for index, image in enumerate(checked):
        if not isinstance(image, Hashable):
            raise InputError(f"{name}[{index}]: is {kind_of(image)}, expected an integer or a string")
    return checked


def _check_rewards(rewards: Sequence[float], groups: Sequence[Hashable]) -> None:
    for index, value in enumerate(rewards):
        if not isinstance(value, SupportsFloat):
            raise InputError(f"rewards[{index}]: is {kind_of(value)}, expected a number")
    if len(rewards) != len(groups):
        raise InputError(f"{counted(len(rewards), 'reward')} and {counted(len(groups), 'group')} don't pair up")


def _shown(images: Sequence[ItemId]) -> str:
    more = ", ..." if len(images) > _NAMED else ""
    return f"{counted(len(images), 'image')} ({', '.join(map(repr, images[:_NAMED]))}{more})"
