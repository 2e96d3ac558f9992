"""W&B Weave: captions scored in an evaluation. With weave.init("project") before, the results go to W&B."""

import asyncio

import weave
from spicegraph_weave import CaptionScorer

rows = [{"image": 1, "references": ["a man riding a horse", "a man on a brown horse"]}]


@weave.op
def model(image: int) -> str:
    """Stand for a model that describes images."""
    return f"a man rides a brown horse{'' if image else 's'}"


evaluation = weave.Evaluation(dataset=rows, scorers=[CaptionScorer(metrics="spice,rouge")])
summary = asyncio.run(evaluation.evaluate(model))["CaptionScorer"]
for name in ("spice", "rouge_l"):
    print(name, f"{summary[name]['mean']:.3f}")
