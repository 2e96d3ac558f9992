"""The ``RewardService`` of the contract: rewards of a batch, with advantages over others of their group."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from spicegraph_api.rewards.v1 import rewards_pb2 as pb
from spicegraph_api.rewards.v1.methods import METHODS
from spicegraph_api.rewards.v1.rewards_pb2_grpc import RewardServiceServicer, add_RewardServiceServicer_to_server
from spicegraph_api.v1 import scores_pb2
from spicegraph_graded.rewards.answers import answer_of, strip_special_tokens
from spicegraph_graded.rewards.model import Baseline, advantages_of
from spicegraph_graded.rewards.reward import DRAFT_TERMS, parse_reward
from spicegraph_parser.errors import InputError
from spicegraph_service import kit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping


_SERVICE: Final = pb.DESCRIPTOR.services_by_name["RewardService"]
_LONGEST: Final = 1_000  # characters of a reward
_BASELINES: Final[Mapping[int, tuple[Baseline, bool]]] = {
    pb.ADVANTAGE_SCALED: ("mean", True),
    pb.ADVANTAGE_MEAN: ("mean", False),
    pb.ADVANTAGE_OTHERS: ("others", False),
}


def open_service(_options: kit.NoOptions, host: kit.Host) -> kit.TokenService:
    """Open the service; its calls need the store for tokens alone, and for the reference sets that they name."""
    add = partial(add_RewardServiceServicer_to_server, RewardServicer(host))
    needs = host.probes if host.authenticator.required else None
    return kit.TokenService(_SERVICE, METHODS[_SERVICE.full_name], add, host.authenticator, needs)


class RewardServicer(RewardServiceServicer):
    """Rewards candidates."""

    def __init__(self, host: kit.Host) -> None:
        self._host = host

    async def Reward(self, request: pb.RewardRequest, context: kit.Context) -> pb.RewardResponse:
        """Reward a batch."""
        del context
        scheduler, references, call = self._host.scheduler, self._host.references, kit.current_call()
        scheduler.budget.check(len(request.items), caller=call.share, refusals=call.refusals)
        metrics = self._metrics(request, scheduler.info)
        for item in request.items:
            answer = answer_of(item.candidate) if request.answer_tags else item.candidate
            item.candidate = strip_special_tokens(answer)
        set_id = request.reference_set if request.HasField("reference_set") else None
        kit.check_items(request.items, self._host.limits, reference_set=set_id is not None, empty="zero", seen=set())
        tenant = call.tenant
        if set_id is None:
            items = [kit.ItemWork(item.id, item.candidate, tuple(item.references)) for item in request.items]
        else:
            tenant = await references.check(set_id, evidence=request.credit)
            items = await references.resolve(set_id, request.items, first=0)
        if request.drafts:
            drafts = map(strip_special_tokens, request.drafts)
            items = [item._replace(draft=draft) for item, draft in zip(items, drafts, strict=True)]
        call.charge(kit.count_captions(items), kit.count_cost(items))
        results, corpus = await scheduler.score(
            items,
            metrics,
            scores_pb2.DETAIL_CREDIT if request.credit else scores_pb2.DETAIL_SCORES,
            kit.RequestData(
                made=kit.MadeMetric("reward", "spicegraph_graded.rewards.reward:make_reward", request.reward)
            ),
            caller=call.share,
            tenant=tenant,
            refusals=call.refusals,
        )
        return _response(request, results, corpus)

    def _metrics(self, request: pb.RewardRequest, info: kit.WorkerInfo) -> tuple[str, ...]:
        """Return the metrics that a reward computes; a CallError that names every wrong field."""
        if request.advantage not in pb.Advantage.values():
            raise kit.invalid([kit.Violation("advantage", f"{request.advantage} is not one of its values")])
        names = _names_of_terms(request.reward, info)
        compares = not set(DRAFT_TERMS).isdisjoint(names)
        violations = list(self._violations(request, info, names, compares=compares))
        if violations:
            raise kit.invalid(violations)
        computed = tuple(metric.name for metric in info.metrics if metric.name in names)
        return (*computed, "spice") if compares and "spice" not in computed else computed

    def _violations(
        self, request: pb.RewardRequest, info: kit.WorkerInfo, names: Collection[str], *, compares: bool
    ) -> Iterator[kit.Violation]:
        """Yield what is wrong with the fields of a request, whose reward has the terms of these names."""
        for metric in info.metrics:
            if metric.name in names and metric.corpus_dependent:
                reason = "depends on the other items of a request here, so that a reward would, too"
                yield kit.Violation(
                    "reward", f"{metric.name} {reason}; start the server with document frequencies (--idf)"
                )
        for field, values, wanted in (("drafts", request.drafts, compares), ("groups", request.groups, False)):
            if (values or wanted) and len(values) != len(request.items):
                yield kit.Violation(field, f"has {len(values)} entries for {len(request.items)} items")
        if request.drafts and not compares:
            yield kit.Violation("drafts", "no term of the reward compares with drafts")
        for index, draft in enumerate(request.drafts):
            yield from kit.caption_faults(f"drafts[{index}]", draft, self._host.limits)


def _names_of_terms(reward: str, info: kit.WorkerInfo) -> dict[str, None]:
    """Return the names of the terms of a reward, each once."""
    if len(reward) > _LONGEST:
        raise kit.invalid([kit.Violation("reward", f"has {len(reward)} characters, the limit is {_LONGEST}")])
    try:
        terms = parse_reward(reward, [metric.name for metric in info.metrics])
    except InputError as error:
        raise kit.invalid([kit.Violation("reward", str(error).removeprefix("reward: "))]) from error
    return dict.fromkeys(term.name for term in terms)


def _item_reward(result: scores_pb2.ItemResult) -> pb.ItemReward:
    first, *terms = result.scores  # the reward, and its terms, whose names begin with the reward's
    return pb.ItemReward(
        id=result.id,
        reward=first.value if first.HasField("value") else None,
        terms=[
            scores_pb2.Score(name=term.name.partition("_")[2], value=term.value if term.HasField("value") else None)
            for term in terms
        ],
        credit=result.credits[0] if result.credits else None,
    )


def _response(request: pb.RewardRequest, results: Iterable[bytes], corpus: bytes) -> pb.RewardResponse:
    """Return the reply; a group in which a reward is undefined has no advantages."""
    (signature,) = scores_pb2.CorpusResult.FromString(corpus).signatures
    rewards = [_item_reward(scores_pb2.ItemResult.FromString(result)) for result in results]
    if request.advantage:
        baseline, scaled = _BASELINES[request.advantage]
        groups = request.groups or [item.reference_id or item.id for item in request.items]
        undefined = {group for group, reward in zip(groups, rewards, strict=True) if not reward.HasField("reward")}
        values = advantages_of([reward.reward for reward in rewards], groups, baseline=baseline, scaled=scaled)
        for reward, group, value in zip(rewards, groups, values, strict=True):
            if group not in undefined:
                reward.advantage = value
    return pb.RewardResponse(items=rewards, signature=signature)
