"""Hugging Face Hub: the files that put a score on a model's page."""

from pathlib import Path

from huggingface_hub import ModelCardData
from huggingface_hub.repocard_data import model_index_to_eval_results
from spicegraph_hub import Benchmark, eval_results, model_index

from spicegraph_scorer import Item, score

references = ("a man riding a horse", "a man on a brown horse")
result = score([Item(1, "a man rides a brown horse", references)], ("spice", "rouge"))
benchmark = Benchmark("lmms-lab/COCO-Caption2017", split="val", name="COCO captions")

folder = Path(".eval_results")
folder.mkdir(exist_ok=True)
(folder / "coco.yaml").write_text(eval_results(result, benchmark, metric="spice"))
name, entries = model_index_to_eval_results(model_index(result, benchmark, model="captioner")["model-index"])
print(ModelCardData(model_name=name, eval_results=entries).to_yaml())
for entry in entries:
    if entry.metric_type in {"spice", "rouge_l"}:
        print(entry.metric_type, f"{entry.metric_value:.3f}")
