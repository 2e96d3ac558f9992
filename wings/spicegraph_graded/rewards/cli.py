"""``spicegraph reward``: files of captions in, a reward for training beside the metrics out."""

from __future__ import annotations

from typing import Annotated

import typer

from spicegraph_graded.rewards.answers import answer_of
from spicegraph_graded.rewards.reward import parse_reward, reward_metric
from spicegraph_scorer.core.significance import Resampling
from spicegraph_scorer.metrics import METRICS
from spicegraph_service import kit


def reward(
    source: Annotated[str, typer.Argument(metavar="INPUT", help="Candidates, as for score.")],
    *,
    terms: Annotated[
        str,
        typer.Option(
            metavar="TERMS",
            help="The terms with their weights, such as spice-g=1,cider=.1,length=-.01; or the name of a reward.",
        ),
    ] = "guarded",
    given: kit.InputOptions,
    scoring: kit.ScoringOptions,
    form: Annotated[
        kit.ResultFormat | None,
        typer.Option("--format", help="The format of the result. Default: the one of -o's file ending, else a table."),
    ] = None,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="Write to this file, as for score.")
    ] = None,
    credit: Annotated[
        bool, typer.Option("--credit", help="In JSON and JSON Lines: what each word of a caption earned of its reward.")
    ] = False,
    answer_tags: Annotated[
        bool,
        typer.Option(
            "--answer-tags",
            help="Candidates are completions: score only the answer, without <think>, or the text in <answer>, "
            "<caption> or \\boxed{}; a completion without an answer scores 0.",
        ),
    ] = False,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Add a 95 % bootstrap interval to every corpus score.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resampling.")] = 12345,
    parsing: kit.ParsingOptions,
) -> None:
    """Score a reward for training, and its terms, beside the metrics."""
    target = kit.ResultOutput(form, output)
    target.check()
    data = scoring.data(*(term.name for term in parse_reward(terms, METRICS)))
    with kit.warned_progress() as progress:
        task = kit.Task(
            source,
            scoring.names,
            parsing.parser,
            workers=parsing.workers,
            cache=parsing.cache_place,
            **given.reading(),
            control_tokens=given.control_tokens or "refuse",
            empty=scoring.empty,
            credit=credit,
            rewrite=kit.Rewrite("answer_tags", "answers alone", answer_of) if answer_tags else None,
            more={"reward": reward_metric(terms)},
            confidence=Resampling(seed=seed) if confidence else None,
            data=data,
            progress=progress,
            say=kit.say,
        )
        target.write(kit.score_here(task))
