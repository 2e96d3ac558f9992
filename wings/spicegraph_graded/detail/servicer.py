"""The ``DifferenceService`` of the contract: what descriptions say wrong, and what they leave out."""

from __future__ import annotations

from functools import partial
from typing import Final

import msgspec

from spicegraph_api.detail.v1 import detail_pb2 as pb
from spicegraph_api.detail.v1.detail_pb2_grpc import DifferenceServiceServicer, add_DifferenceServiceServicer_to_server
from spicegraph_api.detail.v1.methods import METHODS
from spicegraph_api.v1 import scores_pb2
from spicegraph_api.v1.scene_graph_pb2 import TextSpan
from spicegraph_graded.detail.differences import Differences
from spicegraph_service import kit

_SERVICE: Final = pb.DESCRIPTOR.services_by_name["DifferenceService"]
_MADE: Final = kit.MadeMetric("differences", "spicegraph_graded.detail.metric:make_differences", "")
_METRICS: Final = ("detail",)  # it needs parses of captions as they are given


def open_service(_options: kit.NoOptions, host: kit.Host) -> kit.TokenService:
    """Open the service; its calls need the store for tokens alone, and for the reference sets that they name."""
    add = partial(add_DifferenceServiceServicer_to_server, DifferenceServicer(host))
    needs = host.probes if host.authenticator.required else None
    return kit.TokenService(_SERVICE, METHODS[_SERVICE.full_name], add, host.authenticator, needs)


class DifferenceServicer(DifferenceServiceServicer):
    """Compares descriptions with their references."""

    def __init__(self, host: kit.Host) -> None:
        self._host = host

    async def FindDifferences(
        self, request: pb.FindDifferencesRequest, context: kit.Context
    ) -> pb.FindDifferencesResponse:
        """Compare a batch."""
        del context
        scheduler, references, call = self._host.scheduler, self._host.references, kit.current_call()
        scheduler.budget.check(len(request.items), caller=call.share, refusals=call.refusals)
        set_id = request.reference_set if request.HasField("reference_set") else None
        kit.check_items(request.items, self._host.limits, reference_set=set_id is not None, empty="zero", seen=set())
        tenant = call.tenant
        if set_id is None:
            items = [kit.ItemWork(item.id, item.candidate, tuple(item.references)) for item in request.items]
        else:
            tenant = await references.check(set_id, evidence=True)
            items = await references.resolve(set_id, request.items, first=0)
        call.charge(kit.count_captions(items), kit.count_cost(items))
        results, corpus = await scheduler.score(
            items,
            _METRICS,
            scores_pb2.DETAIL_TUPLES,
            kit.RequestData(made=_MADE),
            caller=call.share,
            tenant=tenant,
            refusals=call.refusals,
        )
        (signature,) = scores_pb2.CorpusResult.FromString(corpus).signatures
        return pb.FindDifferencesResponse(
            items=map(_item_message, map(scores_pb2.ItemResult.FromString, results)), signature=signature
        )


def _item_message(result: scores_pb2.ItemResult) -> pb.ItemDifferences:
    """Return an item's differences as a message, from the explanation that a worker sent."""
    (explanation,) = result.explanations
    given = msgspec.json.decode(explanation.json, type=Differences)
    return pb.ItemDifferences(
        id=result.id,
        correctness=given.correctness,
        coverage=given.coverage,
        score=result.scores[0].value,
        other_correctness=given.other_correctness,
        other_coverage=given.other_coverage,
        differences=[
            pb.Difference(
                kind=pb.DifferenceKind.Value(f"DIFFERENCE_KIND_{each.kind.upper()}"),
                aspect=pb.Aspect.Value(f"ASPECT_{each.aspect.upper()}"),
                claim=each.claim,
                reference=each.reference,
                spans=[TextSpan(start=start, end=end) for start, end in each.spans],
                reference_spans=[
                    pb.ReferenceSpan(reference=reference, span=TextSpan(start=start, end=end))
                    for reference, start, end in each.reference_spans
                ],
                severity=each.severity,
                probability=each.probability,
                facts=each.facts,
                reference_facts=each.reference_facts,
                correctness=each.correctness,
                coverage=each.coverage,
            )
            for each in given.differences
        ],
    )
