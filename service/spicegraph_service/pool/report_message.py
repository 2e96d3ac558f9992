"""A report as a message: each record has its converter, so that a field without a partner fails in mypy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from spicegraph_api.report.v1 import report_pb2 as pb
from spicegraph_api.v1 import scene_graph_pb2, scores_pb2
from spicegraph_scorer.errors import CHANCES, KINDS, ErrorSide
from spicegraph_service.pool.convert import SPICE_CATEGORIES, add_explanation
from spicegraph_service.report.data import TupleState
from spicegraph_service.report.verdict import verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from spicegraph_scorer.core.credit import Credit
    from spicegraph_scorer.core.significance import Comparison
    from spicegraph_scorer.errors import ErrorKind
    from spicegraph_service.output.standing import Standing
    from spicegraph_service.report import data
    from spicegraph_service.report.verdict import TellingError, Verdict

_KINDS: Final = {name: scores_pb2.ErrorKind.Value(f"ERROR_KIND_{name.upper()}") for name in KINDS}
_SIDES: Final = {side: scores_pb2.ErrorSide.Value(f"ERROR_SIDE_{side.name}") for side in ErrorSide}
_STATES: Final = {state: pb.TupleState.Value(f"TUPLE_STATE_{state.name}") for state in TupleState}


def convert_report(report: data.Report, *, images: bool, groups: bool, examples: int) -> pb.ErrorReport:
    """Return a report as a message, with all images, the ``examples`` that tell most, or none."""
    decided = verdict(report)
    shown = _choose_images(report, decided.telling, examples) if images else ()
    message = pb.ErrorReport(
        title=report.title,
        version=report.version,
        items=report.items,
        categories=report.categories,
        systems=[_convert_system(system, groups=groups) for system in report.systems],
        human=None if report.human is None else _convert_system(report.human, groups=groups),
        tests=[_convert_test(test, *names) for names, tests in report.tests.items() for test in tests],
        gained=map(_convert_change, report.gained if images else ()),
        lost=map(_convert_change, report.lost if images else ()),
        images=[_convert_image(report.images[item], item) for item in shown],
        synsets=_convert_synsets(report.synsets if images else {}),
        metrics=report.metrics,
        made=None if report.made is None else _convert_provenance(report.made),
        headline=report.headline,
        standings=map(_convert_standing, report.standings),
        verdict=_convert_verdict(decided, telling=decided.telling if images else ()),
        gates=map(_convert_gate, report.gates),
        warnings=report.warnings,
    )
    message.signature.update(msgspec.json.decode(msgspec.json.encode(report.signature)))
    return message


def _choose_images(report: data.Report, telling: Iterable[TellingError], most: int) -> Sequence[int]:
    """Return the images that are shown whole: all, or the examples, those that differ most, and the worst."""
    items = range(len(report.images))
    if len(items) <= most:
        return items
    worst = sorted(items, key=lambda item: min(view.scores[0] or 0.0 for view in report.images[item].candidates))
    moved = (change.item for pair in zip(report.gained, report.lost, strict=False) for change in pair)
    return list(dict.fromkeys((*(error.item for error in telling), *moved, *worst)))[:most]


def _convert_system(view: data.SystemView, *, groups: bool) -> pb.SystemReport:
    return pb.SystemReport(
        name=view.name,
        scores=[
            pb.ScoreRow(
                name=row.name,
                value=row.value,
                low=row.low,
                high=row.high,
                rank=row.rank,
                lower_is_better=row.lower_is_better,
            )
            for row in view.scores
        ],
        categories=map(_convert_category, view.categories),
        hallucinations=[
            pb.HallucinationRow(
                category=row.category,
                invented=row.invented,
                said=row.said,
                captions=row.captions,
                per_instance=row.per_instance,
                per_sentence=row.per_sentence,
                spice_category=_category(row.category),
            )
            for row in view.hallucinations
        ],
        kinds=[_convert_kind(kind, groups=groups) for kind in view.kinds],
        distribution=map(_convert_mean, view.distribution),
        by_length=map(_convert_mean, view.by_length),
        by_references=map(_convert_mean, view.by_references),
        wrong=[
            pb.WrongStatement(
                words=wrong.words,
                count=wrong.count,
                said=wrong.said,
                contradicted=wrong.contradicted,
                instead=wrong.instead,
                items=wrong.items,
            )
            for wrong in (view.wrong if groups else ())
        ],
        digits=None
        if view.digits is None
        else pb.DigitCounts(captions=view.digits.captions, f=view.digits.f, items=view.digits.items),
    )


def _category(name: str) -> scores_pb2.SpiceCategory.ValueType:
    return SPICE_CATEGORIES.get(name, scores_pb2.SPICE_CATEGORY_UNSPECIFIED)


def _convert_category(row: data.CategoryRow) -> pb.CategoryRow:
    return pb.CategoryRow(
        name=row.name,
        f=row.f,
        low=row.low,
        high=row.high,
        pr=row.pr,
        re=row.re,
        items=row.items,
        tp=row.tp,
        fp=row.fp,
        fn=row.fn,
        spice_category=_category(row.name),
    )


def _convert_kind(errors: ErrorKind, *, groups: bool) -> pb.ErrorKindRow:
    return pb.ErrorKindRow(
        key=_KINDS[errors.name],
        title=errors.kind.title,
        side=_SIDES[errors.kind.side],
        primary=errors.kind.primary,
        near=errors.kind.near,
        among=CHANCES[errors.kind.among].title,
        columns=errors.kind.columns,
        count=errors.count,
        of=errors.of,
        rate=errors.rate,
        items=errors.items,
        groups=[
            pb.ErrorGroup(words=group.words, count=group.count, weight=group.weight, rate=group.rate, items=group.items)
            for group in (errors.groups if groups else ())
        ],
    )


def _convert_mean(row: data.MeanRow) -> pb.MeanRow:
    return pb.MeanRow(label=row.label, items=row.items, mean=row.mean)


def _convert_numbers(values: Iterable[float | None]) -> list[pb.MaybeNumber]:
    return [pb.MaybeNumber(value=value) for value in values]


def _convert_test(test: Comparison, first: str, second: str) -> pb.PairedTest:
    return pb.PairedTest(
        name=test.name,
        first=first,
        second=second,
        difference=test.difference,
        low=test.low,
        high=test.high,
        p_bootstrap=test.p_bootstrap,
        p_randomization=test.p_randomization,
        p_corrected=test.p_corrected,
    )


def _convert_change(change: data.ScoreChange) -> pb.ScoreChange:
    return pb.ScoreChange(item=change.item, image_id=str(change.image_id), first=change.first, second=change.second)


def _convert_synsets(synsets: Mapping[int, tuple[Mapping[str, str], ...]]) -> dict[int, pb.SynsetReadings]:
    return {
        number: pb.SynsetReadings(value=[pb.Synset(name=one["name"], gloss=one["gloss"]) for one in readings])
        for number, readings in synsets.items()
    }


def _convert_provenance(made: data.Provenance) -> pb.Provenance:
    inputs = [pb.InputFile(name=one["name"], sha256=one["sha256"]) for one in made.inputs]
    return pb.Provenance(time=made.time, command=made.command or "", inputs=inputs)


def _convert_standing(row: Standing) -> pb.Standing:
    return pb.Standing(
        category=row.category,
        items=row.items,
        values=_convert_numbers(row.values),
        best=row.best,
        ps=_convert_numbers(row.ps),
        human=row.human,
        random=row.random,
        tied=row.tied,
        is_sure=row.is_sure,
        spice_category=_category(row.category),
    )


def _convert_verdict(decided: Verdict, telling: Iterable[TellingError]) -> pb.Verdict:
    test = decided.test
    return pb.Verdict(
        headline=decided.headline,
        detail=decided.detail,
        points=[pb.Point(name=name, text=text) for name, text in decided.points],
        telling=map(_convert_telling, telling),
        best=decided.best or "",
        other=decided.other or "",
        test=None
        if test is None
        else pb.VerdictTest(
            name=test.name,
            difference=test.difference,
            low=test.low,
            high=test.high,
            p_bootstrap=test.p_bootstrap,
            p_randomization=test.p_randomization,
            p_corrected=test.p_corrected,
            first=test.first,
            second=test.second,
        ),
    )


def _convert_telling(error: TellingError) -> pb.TellingError:
    return pb.TellingError(
        item=error.item,
        image_id=str(error.image_id),
        source=error.source or "",
        system=error.system,
        kind=_KINDS[error.kind],
        sentence=error.sentence,
        captions=[
            pb.MarkedCaption(
                system=system, parts=[pb.MarkedPart(text=text, state=state or "") for text, state in parts]
            )
            for system, parts in error.captions
        ],
        scores=_convert_numbers(error.scores),
    )


def _convert_gate(gate: data.GateResult) -> pb.GateResult:
    return pb.GateResult(
        condition=gate.condition, passed=gate.passed, difference=gate.difference, low=gate.low, high=gate.high, p=gate.p
    )


def _convert_image(image: data.ImageView, item: int) -> pb.ImageView:
    return pb.ImageView(
        id=str(image.id),
        references=image.references,
        source=image.source or "",
        candidates=map(_convert_candidate, image.candidates),
        item=item,
    )


def _convert_candidate(view: data.CandidateView) -> pb.CandidateView:
    return pb.CandidateView(
        caption=view.caption,
        scores=_convert_numbers(view.scores),
        candidate=map(_convert_tuple, view.candidate),
        reference=map(_convert_tuple, view.reference),
        picture=_convert_picture(view.picture),
        graded=None if view.graded is None else _convert_graded(view.graded),
        counts=[
            pb.Counts(matched=one.matched, candidate=one.candidate, reference=one.reference) for one in view.counts
        ],
        metrics=_convert_numbers(view.metrics),
        workings=[
            pb.Working(score=one.score, text=one.text, values=_convert_numbers(one.values)) for one in view.workings
        ],
        credits={name: _convert_credit(credit) for name, credit in view.credits.items()},
        description={name: _convert_side(side) for name, side in (view.description or {}).items()},
    )


def _convert_graded(view: data.GradedView) -> pb.GradedView:
    result = scores_pb2.ItemResult()
    add_explanation(result, "spice-g", view.explanation, verdicts=True)
    return pb.GradedView(score=view.score, explanation=result.graded_matches[0])


def _convert_tuple(view: data.TupleView) -> pb.TupleView:
    return pb.TupleView(
        strings=view.strings,
        mentions=[
            pb.Mention(
                caption=mention.caption,
                rule=mention.rule,
                spans=[scene_graph_pb2.TextSpan(start=start, end=end) for start, end in mention.spans],
            )
            for mention in view.mentions
        ],
        partners=view.partners,
        how=view.how,
        kind=scores_pb2.ERROR_KIND_UNSPECIFIED if view.kind is None else _KINDS[view.kind],
        counterpart=view.counterpart,
        near="" if view.near is None else str(view.near),
        merged=view.merged,
    )


def _convert_labels(labels: Iterable[tuple[str, TupleState, int]]) -> list[pb.PictureLabel]:
    return [pb.PictureLabel(name=name, state=_STATES[state], tuple=number) for name, state, number in labels]


def _convert_picture(picture: data.GraphPicture) -> pb.GraphPicture:
    return pb.GraphPicture(
        width=picture.width,
        height=picture.height,
        boxes=[
            pb.CardPicture(
                name=card.name,
                state=_STATES[card.state],
                x=card.x,
                y=card.y,
                width=card.width,
                height=card.height,
                attributes=_convert_labels(card.attributes),
                tuple=card.tuple,
            )
            for card in picture.boxes
        ],
        lines=[
            pb.ArrowPicture(
                labels=_convert_labels(arrow.labels), points=[pb.PicturePoint(x=x, y=y) for x, y in arrow.points]
            )
            for arrow in picture.lines
        ],
    )


def _convert_credit(credit: Credit) -> pb.CreditView:
    return pb.CreditView(
        words=[
            pb.CreditWord(text=word.text, start=word.start, end=word.end, credit=word.credit) for word in credit.words
        ],
        parts=[pb.CreditPart(kind=part.kind, words=part.words, credit=part.credit) for part in credit.parts],
        score=credit.score,
        phrases=credit.phrases,
    )


def _convert_side(side: data.SideView) -> pb.SideView:
    return pb.SideView(
        sentences=[
            pb.CaptionSentences(
                value=[
                    pb.SentenceView(start=one.start, end=one.end, tuples=one.tuples, matched=one.matched)
                    for one in caption
                ]
            )
            for caption in side.sentences
        ],
        objects=[
            pb.ObjectView(object=one.object, attributes=one.attributes, relations=one.relations) for one in side.objects
        ],
    )
