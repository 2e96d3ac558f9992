"""Scores that come over gRPC are the library's, bit for bit, whichever way they are asked for."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import random
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from spicegraph_api.v1 import scene_graph_pb2, scores_pb2
from spicegraph_parser import load_pipeline
from spicegraph_scorer import score
from spicegraph_scorer.core.items import Item
from spicegraph_scorer.metrics import METRICS
from spicegraph_service.client import AsyncClient, Client, item
from waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from servers import RunningServer
    from spicegraph_scorer.core.results import Result
    from spicegraph_scorer.metrics.spice.match import Match

pytestmark = pytest.mark.model

GOLDEN = Path(__file__).parents[1] / "golden" / "spice" / "spice_scores.jsonl.gz"
COUNT = 150  # more than two chunks


@pytest.fixture(scope="module")
def items() -> list[Item]:
    with gzip.open(GOLDEN, "rt") as lines:
        rows = [json.loads(line) for line, _ in zip(lines, range(COUNT), strict=False)]
    return [Item(f"{n}", row["candidate"], tuple(row["references"])) for n, row in enumerate(rows)]


@pytest.fixture(scope="module")
def names(server: RunningServer) -> list[str]:
    with Client(server.address) as client:
        return [metric.name for metric in client.server_info().metrics]


@pytest.fixture(scope="module")
def truth(items: list[Item], names: list[str]) -> Result:
    return score(items, names)


def sent(items: Iterable[Item], *, references: bool = True) -> list[scores_pb2.Item]:
    return [item(one.id, one.candidate, one.references if references else ()) for one in items]


def violations(error: grpc.RpcError) -> list[error_details_pb2.BadRequest.FieldViolation]:
    status = rpc_status.from_call(error)  # type: ignore[arg-type]
    found = error_details_pb2.BadRequest()
    assert status is not None
    assert any(detail.Is(found.DESCRIPTOR) and detail.Unpack(found) for detail in status.details)
    return list(found.field_violations)


def corpus_truth(result: Result) -> dict[str, float | None]:
    return {one.name: one.value for run in result.runs for one in run.scores}


def item_truth(result: Result, index: int) -> dict[str, float | None]:
    return {one.name: one.each[index] for run in result.runs for one in run.scores}


def test_the_server_serves_every_metric_of_the_library(names: list[str], client: Client) -> None:
    assert names == list(METRICS)
    info = client.server_info()
    assert info.pipeline == load_pipeline().signature
    assert (info.limits.max_items, info.limits.max_item_characters) == (300, 20_000)


def test_a_batch_scores_as_in_the_library(client: Client, items: list[Item], names: list[str], truth: Result) -> None:
    reply = client.score(sent(items), metrics=names, detail=scores_pb2.DETAIL_TUPLES)
    assert [result.id for result in reply.items] == [one.id for one in items]
    assert [result.scores for result in reply.items] == [item_truth(truth, index) for index in range(len(items))]
    assert reply.corpus.item_count == len(items)
    assert reply.corpus.scores == corpus_truth(truth)
    assert {s.metric: dict(s.fields) for s in reply.corpus.signatures} == {
        run.name: dict(run.signature) for run in truth.runs
    }


def test_a_small_batch_scores_as_in_the_library(client: Client, items: list[Item], names: list[str]) -> None:
    few = items[:20]
    truth = score(few, names)
    reply = client.score(sent(few), metrics=names)
    assert [result.scores for result in reply.items] == [item_truth(truth, n) for n in range(20)]
    assert reply.corpus.scores == corpus_truth(truth)


def test_evidence_is_the_library_s(client: Client, items: list[Item], truth: Result) -> None:
    reply = client.score(sent(items), metrics=["spice"], detail=scores_pb2.DETAIL_TUPLES)
    run = next(run for run in truth.runs if run.name == "spice")
    for result, statistic in zip(reply.items, run.statistics, strict=True):
        (breakdown,) = result.breakdowns
        counts = {c.category: (c.matched, c.candidate, c.reference) for c in breakdown.categories}
        assert counts == {n: (c.matched, c.candidate, c.reference) for n, c in statistic.counts.items()}
        for category in breakdown.categories:
            f1 = category.f1 if category.HasField("f1") else None
            assert f1 == statistic.f1(category.category)
        (match,) = result.matches
        assert sides(match) == truth_sides(statistic.match)


def sides(match: scores_pb2.TupleMatch) -> list[list[tuple[tuple[str, ...], tuple[int, ...]]]]:
    return [[(tuple(t.tuple.words), tuple(t.partners)) for t in side] for side in (match.candidate, match.reference)]


def truth_sides(match: Match) -> list[list[tuple[tuple[str, ...], tuple[int, ...]]]]:
    pairs = ((match.candidate, match.candidate_partners), (match.reference, match.reference_partners))
    return [[(t.strings, tuple(p)) for t, p in zip(side, ps, strict=True)] for side, ps in pairs]


def test_less_detail_brings_less(client: Client, items: list[Item]) -> None:
    plain = client.score(sent(items[:3]))
    assert not any(result.breakdowns or result.matches for result in plain.items)
    categories = client.score(sent(items[:3]), detail=scores_pb2.DETAIL_CATEGORIES)
    assert all(result.breakdowns and not result.matches for result in categories.items)


def test_a_reference_set_scores_as_inline_references(
    client: Client, items: list[Item], names: list[str], truth: Result
) -> None:
    created = client.create_reference_set({str(one.id): one.references for one in items}, display_name="golden")
    reply = client.score(sent(items, references=False), metrics=names, reference_set=created.id)
    assert [result.scores for result in reply.items] == [item_truth(truth, index) for index in range(len(items))]
    assert reply.corpus.scores == corpus_truth(truth)


def test_several_candidates_may_share_an_entry(client: Client, items: list[Item]) -> None:
    created = client.create_reference_set({"image": items[0].references})
    samples = [item(f"sample-{n}", one.candidate, reference_id="image") for n, one in enumerate(items[:5])]
    reply = client.score(samples, reference_set=created.id)
    expected = score([Item(n, one.candidate, items[0].references) for n, one in enumerate(items[:5])])
    assert [result.scores for result in reply.items] == [item_truth(expected, n) for n in range(5)]


def streamed(
    client: Client, items: list[Item], names: list[str], **options: str
) -> tuple[dict[str, dict[str, float | None]], scores_pb2.CorpusResult]:
    found: dict[str, dict[str, float | None]] = {}
    corpus = None
    for response in client.stream(sent(items, references=not options), metrics=names, **options):
        assert corpus is None
        for result in response.items:
            found.setdefault(result.id, {}).update(result.scores)
        if response.message.HasField("corpus"):
            corpus = response.corpus
    assert corpus is not None
    return found, corpus


def test_a_stream_scores_as_a_batch(client: Client, items: list[Item], names: list[str], truth: Result) -> None:
    found, corpus = streamed(client, items, names)
    assert found == {str(one.id): item_truth(truth, index) for index, one in enumerate(items)}
    assert corpus.scores == corpus_truth(truth)
    assert corpus.item_count == len(items)


def test_the_order_of_a_stream_does_not_change_items(client: Client, items: list[Item], truth: Result) -> None:
    names = ["spice", "bleu", "meteor"]
    shuffled = items.copy()
    random.Random(5).shuffle(shuffled)
    found, corpus = streamed(client, shuffled, names)
    for index, one in enumerate(items):
        expected = item_truth(truth, index)
        assert found[str(one.id)] == {name: expected[name] for name in found[str(one.id)]}
    assert corpus.scores == {name: corpus_truth(truth)[name] for name in corpus.scores}


def test_every_worker_scores_alike(start_server: Callable[..., RunningServer], items: list[Item]) -> None:
    """Many calls on two workers, and one of the two is killed in between: bit for bit the library's numbers."""
    server = start_server("--workers=2", "--max-wait=60")
    wait_until(lambda: len(server.workers()) == 2 and server.health() == 1)
    first, second = server.workers()
    started = [cpu_seconds(worker) for worker in (first, second)]
    truth = score(items)
    expected = [item_truth(truth, index) for index in range(len(items))]
    with Client(server.address) as client, ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(client.score, sent(items[n % 5 :])) for n in range(12)]
        wait_until(lambda: all(cpu_seconds(pid) > s for pid, s in zip((first, second), started, strict=True)))
        os.kill(first, signal.SIGKILL)
        for n, call in enumerate(calls):
            assert [result.scores for result in call.result(60).items] == expected[n % 5 :]
        wait_until(lambda: len(server.workers()) == 2 and first not in server.workers())
        assert client.score(sent(items)).corpus.scores == corpus_truth(truth)
    assert server.stop() == 0


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_stream_answers_before_it_ends(server: RunningServer, items: list[Item]) -> None:
    """A client may wait for the result of one item before it sends the next."""

    async def converse() -> list[str]:
        answered: asyncio.Queue[str] = asyncio.Queue()

        async def one_by_one():
            for one in sent(items[:3]):
                yield one
                assert await asyncio.wait_for(answered.get(), 30) == one.id

        seen = []
        async with AsyncClient(server.address) as client:
            async for response in client.stream(one_by_one()):
                for result in response.items:
                    seen.append(result.id)
                    answered.put_nowait(result.id)
        return seen

    assert asyncio.run(converse()) == ["0", "1", "2"]


def test_the_asynchronous_client_has_the_same_calls(server: RunningServer, items: list[Item]) -> None:
    async def talk() -> tuple[int, str, list[str]]:
        async with AsyncClient(server.address) as client:
            await client.server_info()
            parsed = await client.parse(["a brown dog"])
            created = await client.create_reference_set({"x": items[0].references}, display_name="async")
            got = await client.get_reference_set(created.id)
            assert got == created
            reply = await client.score([item("x", "a dog")], reference_set=created.id)
            ids = [one.id async for one in client.list_reference_sets()]
            await client.delete_reference_set(created.id)
            return len(reply.items), parsed[0].text, ids

    count, text, ids = asyncio.run(talk())
    assert count == 1
    assert text == "a brown dog"
    assert ids == sorted(ids)


def test_parses_are_the_library_s(client: Client, items: list[Item]) -> None:
    texts = [*(one.candidate for one in items[:80]), "", "two dogs ; a   cat\non a mat", "čistý 🐶 dog"]
    parsed = client.parse(texts)
    for text, ours, theirs in zip(texts, parsed, load_pipeline().captions(texts), strict=True):
        assert ours.text == text
        facts = [(tuple(s.word for s in f.slots), f.rule, tuple(tuple(s.tokens) for s in f.slots)) for f in ours.facts]
        assert facts == [(fact.words, fact.rule, fact.tokens) for fact in theirs.facts]
        assert [tuple(t.words) for t in ours.tuples] == [t.strings for t in theirs.graph().tuples()]
        words = [word for parse in theirs.sentences for word in parse.words]
        for fact in ours.facts:
            for slot in fact.slots:
                places = [(words[token].start, words[token].end) for token in slot.tokens]
                assert [(s.start, s.end) for s in slot.spans] == [place for place in places if place[0] >= 0]
        for attribute in ours.graph.attributes:
            assert attribute.object < len(ours.graph.objects)
            assert all(len(ours.facts[index].slots) == 2 for index in attribute.facts)


def test_an_empty_candidate_scores_zero(client: Client) -> None:
    some = [item("1", "", ["a dog"]), item("2", "a dog", ["a dog"]), item("3", " \n", ["a cat"])]
    for empty in (scores_pb2.EMPTY_CANDIDATES_UNSPECIFIED, scores_pb2.EMPTY_CANDIDATES_ZERO):
        reply = client.score(some, empty=empty)
        assert [each.scores["SPICE"] for each in reply.items] == [0.0, 1.0, 0.0]
        assert reply.corpus.empty_candidate_count == 2
        *_, last = client.stream(some, empty=empty)
        assert last.corpus == reply.corpus


MARKED = [item("1", "a dog <eos> <pad>", ["a dog"]), item("2", "a <unk> cat", ["a cat", "A cat.</s>"])]


def test_control_tokens_are_refused_taken_off_or_kept(client: Client) -> None:
    for call in (lambda: client.score(MARKED), lambda: list(client.stream(MARKED))):
        with pytest.raises(grpc.RpcError) as caught:
            call()
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        found = [(violation.field, violation.description) for violation in violations(caught.value)]
        assert [field for field, _ in found] == ["items[0].candidate", "items[1].candidate", "items[1].references[1]"]
        assert found[0][1] == (
            "contains what models leave behind: <eos>, <pad>; control_tokens: CONTROL_TOKENS_STRIP takes it off, "
            "CONTROL_TOKENS_KEEP scores it as words"
        )
    clean = client.score([item("1", "a dog", ["a dog"]), item("2", "a cat", ["a cat", "A cat."])], metrics=["bleu"])
    for rule, done in (
        (scores_pb2.CONTROL_TOKENS_STRIP, "was taken off"),
        (scores_pb2.CONTROL_TOKENS_KEEP, "as words"),
    ):
        reply = client.score(MARKED, metrics=["bleu"], control_tokens=rule)
        assert (reply.corpus.scores == clean.corpus.scores) is (rule == scores_pb2.CONTROL_TOKENS_STRIP)
        assert dict(reply.corpus.control_tokens) == {"<eos>": 1, "<pad>": 1, "<unk>": 1, "</s>": 1}
        assert done in reply.corpus.warnings[0]
        *_, last = client.stream(MARKED, metrics=["bleu"], control_tokens=rule)
        assert last.corpus == reply.corpus
    assert not clean.corpus.control_tokens


def test_what_is_empty_without_control_tokens_is_refused_where_empty_candidates_are(client: Client) -> None:
    some = [item("1", "<pad> <pad>", ["a dog"])]
    strip, refuse = scores_pb2.CONTROL_TOKENS_STRIP, scores_pb2.EMPTY_CANDIDATES_REFUSE
    with pytest.raises(grpc.RpcError) as caught:
        client.score(some, control_tokens=strip, empty=refuse)
    assert [(each.field, each.description) for each in violations(caught.value)] == [("items[0].candidate", "is empty")]
    assert client.score(some, control_tokens=strip).corpus.empty_candidate_count == 1


def test_reference_sets_mind_them_too(client: Client) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        client.create_reference_set({"1": ["a dog <eos>"]})
    assert [each.field for each in violations(caught.value)] == ["entries[0].references[0]"]
    stored = client.create_reference_set({"1": ["a dog <eos>"]}, control_tokens=scores_pb2.CONTROL_TOKENS_STRIP)
    assert stored.id == client.create_reference_set({"1": ["a dog"]}).id


def test_empty_graphs_are_told(client: Client) -> None:
    some = [item("1", "Some dogs.", ["two dogs"]), item("2", "", ["a dog"]), item("3", "a dog", ["a dog"])]
    reply = client.score(some)
    assert reply.corpus.empty_graph_count == 1
    assert "1 of 3 candidates has an empty graph" in reply.corpus.warnings[0]
    assert "GRAPH_STYLE_SCENE" in reply.corpus.warnings[0]
    *_, last = client.stream(some)
    assert last.corpus == reply.corpus
    assert not client.score(some, graph_style=scene_graph_pb2.GRAPH_STYLE_SCENE).corpus.warnings


def test_undefined_is_absent(client: Client) -> None:
    scores = client.score([item("1", "a dog", ["a dog"])]).items[0].scores
    assert scores["SPICE"] == 1.0
    assert scores["SPICE_Color"] is None


def test_graded_evidence_is_the_library_s(client: Client, items: list[Item]) -> None:
    few = [*items[:5], Item("salad", " ".join(sorted(items[5].candidate.split())), items[5].references)]
    run = score(few, ["spice-g"], explain=True).runs[0]
    assert run.explanations[-1].order < 1
    reply = client.score(sent(few), metrics=["spice-g"], detail=scores_pb2.DETAIL_CHANGES)
    for result, statistic, why in zip(reply.items, run.statistics, run.explanations, strict=True):
        (breakdown,) = result.breakdowns
        assert {c.category: c.f1 if c.HasField("f1") else None for c in breakdown.categories} == {
            name: statistic.f1(name) for name in statistic.weights
        }
        (match,) = result.graded_matches
        for sent_back, truth in ((match.candidate, why.candidate), (match.reference, why.reference)):
            assert [tuple(found.tuple.words) for found in sent_back] == [found.words for found in truth]
            assert [found.support for found in sent_back] == [found.support for found in truth]
            assert [f.partner if f.HasField("partner") else None for f in sent_back] == [f.partner for f in truth]
            assert [[s.value if s.HasField("value") else None for s in f.slots] for f in sent_back] == [
                list(found.slots) for found in truth
            ]
        assert [(c.action, tuple(c.tuple.words), c.gain) for c in match.changes] == [
            (c.action, c.words, c.gain) for c in why.changes
        ]
        assert match.order == why.order
    assert any(result.graded_matches[0].changes for result in reply.items)
    (without,) = client.score(sent(few[:1]), metrics=["spice-g"], detail=scores_pb2.DETAIL_TUPLES).items
    assert without.graded_matches
    assert not without.graded_matches[0].changes


GIRAFFE = Item(
    "giraffe", "A brown 🦒 giraffe on a blue couch", ("A dog on a red couch.", "A brown dog lies on a red sofa.")
)
VERDICTS = {
    scores_pb2.VERDICT_SUPPORTED: "supported",
    scores_pb2.VERDICT_CONTRADICTED: "contradicted",
    scores_pb2.VERDICT_UNMENTIONED: "unmentioned",
}


def test_verdicts_are_the_library_s(server: RunningServer, client: Client, items: list[Item]) -> None:
    """They come with their detail alone, from a batch, a stream, and the client of asyncio."""
    few = [*items[:5], GIRAFFE]
    why = [found.verdicts for found in score(few, ["spice-g"], explain=True).runs[0].explanations]
    asked = {"metrics": ["spice-g"], "detail": scores_pb2.DETAIL_VERDICTS}

    async def awaited() -> list[scores_pb2.ItemResult]:
        async with AsyncClient(server.address) as other:
            return list((await other.score(sent(few), **asked)).items)  # type: ignore[arg-type]

    batch = client.score(sent(few), **asked).items  # type: ignore[arg-type]
    came = {one.id: one for reply in client.stream(iter(sent(few)), **asked) for one in reply.items}  # type: ignore[arg-type]
    for results in (batch, [came[one.id] for one in few], asyncio.run(awaited())):
        matches = [result.graded_matches[0] for result in results]
        assert [[_word(word) for word in match.verdicts.words] for match in matches] == [
            [
                (one.word, one.spans, one.verdict, one.probability, one.support, one.partner, one.instead)
                for one in found.words
            ]
            for found in why
        ]
        assert [
            [(tuple(one.tuple.words), VERDICTS[one.verdict], one.probability) for one in match.verdicts.tuples]
            for match in matches
        ] == [[(one.words, one.verdict, one.probability) for one in found.tuples] for found in why]
        assert [match.verdicts.threshold for match in matches] == [found.threshold for found in why]
        assert matches[0].changes
    (giraffe,) = [word for word in batch[5].graded_matches[0].verdicts.words if word.word == "giraffe"]
    assert (VERDICTS[giraffe.verdict], giraffe.instead) == ("contradicted", "dog")
    assert [GIRAFFE.candidate[span.start : span.end] for span in giraffe.spans] == ["giraffe"]
    (empty,) = client.score([item("1", "", ["a dog"])], **asked).items  # type: ignore[arg-type]
    assert empty.graded_matches[0].HasField("verdicts")
    assert not empty.graded_matches[0].verdicts.words
    for detail in (scores_pb2.DETAIL_TUPLES, scores_pb2.DETAIL_CHANGES):
        (less,) = client.score(sent([GIRAFFE]), metrics=["spice-g"], detail=detail).items
        assert not less.graded_matches[0].HasField("verdicts")


def _word(word: scores_pb2.WordVerdict) -> tuple[object, ...]:
    return (
        word.word,
        tuple((span.start, span.end) for span in word.spans),
        VERDICTS[word.verdict],
        word.probability,
        word.support,
        word.partner if word.HasField("partner") else None,
        word.instead if word.HasField("instead") else None,
    )


@pytest.mark.parametrize("count", [5, 66])
def test_credits_are_the_library_s(client: Client, items: list[Item], count: int) -> None:
    """In one chunk, and in several, where CIDEr-D is known at the end alone; from a stream, too."""
    few, metrics = items[:count], ["spice", *(["spice-g"] if count < 10 else []), "cider", "spider", "bleu"]
    truth = {run.name: run.credits for run in score(few, metrics, credit=True).runs if run.credits}
    assert list(truth) == metrics[:-1]
    asked = {"metrics": metrics, "detail": scores_pb2.DETAIL_CREDIT}
    batch = client.score(sent(few), **asked).items  # type: ignore[arg-type]
    streamed: dict[str, list[scores_pb2.Credit]] = {}
    for reply in client.stream(iter(sent(few)), **asked):  # type: ignore[arg-type]
        for one in reply.items:
            streamed.setdefault(one.id, []).extend(one.credits)
    for number, (one, result) in enumerate(zip(few, batch, strict=True)):
        for credits_of in (list(result.credits), streamed[str(one.id)]):
            assert {found.metric for found in credits_of} == set(truth)
            for found in credits_of:
                library = truth[found.metric][number]
                assert [(word.span.start, word.span.end) for word in found.words] == [w[1:3] for w in library.words]
                assert [word.credit for word in found.words] == pytest.approx(
                    [w.credit for w in library.words], abs=1e-12
                )
                assert [(part.kind, tuple(part.words)) for part in found.parts] == [p[:2] for p in library.parts]
    plain = client.score(sent(few[:2]), metrics=metrics, detail=scores_pb2.DETAIL_VERDICTS)
    assert not any(result.credits for result in plain.items)


def test_an_undefined_score_has_no_credit(client: Client) -> None:
    asked = [item("1", "a dog", ["a dog"])]
    (result,) = client.score(asked, metrics=["cider-d", "spice"], detail=scores_pb2.DETAIL_CREDIT).items
    assert [found.metric for found in result.credits] == ["spice"]
