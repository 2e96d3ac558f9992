"""MLflow 3: captions scored in an evaluation, recorded in a local database."""

import mlflow
from spicegraph_mlflow import caption_scorer

mlflow.set_tracking_uri("sqlite:///mlflow.db")
mlflow.set_experiment("captions")
references = {"references": ["a man riding a horse", "a man on a brown horse"]}
rows = [{"inputs": {"image": 1}, "outputs": "a man rides a brown horse", "expectations": references}]
result = mlflow.genai.evaluate(data=rows, scorers=[caption_scorer("spice,rouge")])
for name in ("spice", "rouge_l"):
    print(name, f"{result.metrics[f'{name}/mean']:.3f}")
