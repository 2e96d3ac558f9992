"""Runs evaluation and training scripts of other repositories, unchanged, on spicegraph; no Java process may start.

python tools/run_third_party.py FOLDER [--original] > values.json

FOLDER holds files at their paths in their repositories (`lmms_eval/tasks/coco_cap/utils.py`); the list is SCRIPTS.
Those that are there are run on 60 images of `examples/coco`. What the scripts import besides (torch, PIL, their own
packages) is replaced by stand-ins where it is not installed.

With `--original` they run on pycocoevalcap and its Java programs instead, without SPICE, whose models are a download.
The n-gram scores of the two runs must be equal. The scripts belong to others and are not kept in this repository.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import os
import pickle
import sys
import tempfile
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLES = Path(__file__).parents[1] / "examples" / "coco"
IMAGES = 60
Values = dict[str, float]


class Inputs:
    """Two systems' captions and the references of some images, also as the files that scripts read."""

    def __init__(self) -> None:
        annotations = json.loads((EXAMPLES / "captions.json").read_text())
        self.results = json.loads((EXAMPLES / "retrieval.json").read_text())[:IMAGES]
        others = {row["image_id"]: row["caption"] for row in json.loads((EXAMPLES / "human.json").read_text())}
        self.ids = [row["image_id"] for row in self.results]
        self.references = {image_id: [] for image_id in self.ids}
        for row in annotations["annotations"]:
            if row["image_id"] in self.references:
                self.references[row["image_id"]].append(row["caption"])
        self.samples = self.results + [{"image_id": i, "caption": others[i]} for i in self.ids]
        chosen = [row for row in annotations["annotations"] if row["image_id"] in self.references]
        self.annotations = {"images": [{"id": image_id} for image_id in self.ids], "annotations": chosen}
        self.write("captions.json", self.annotations)
        self.write("captions_val2014.json", self.annotations)
        self.write("coco_karpathy_val_gt.json", self.annotations)
        self.write("coco_karpathy_test_gt.json", self.annotations)
        self.write("results.json", self.results)
        self.write("captions_val2014_fakecap_results.json", self.results)
        Path("eval_results").mkdir()

    @staticmethod
    def write(name: str, content: object) -> None:
        """Write a JSON file."""
        Path(name).write_text(json.dumps(content))


def lmms_eval(prefix: str, *, sentences: int = 1) -> Callable[[Any, Inputs], Values]:
    """Return what runs a task's aggregation functions on stored predictions of so many sentences."""

    def joined(captions: list[str], start: int) -> str:
        return " ".join(f"{captions[(start + n) % len(captions)].rstrip('. ')}." for n in range(sentences))

    def run(module: Any, inputs: Inputs) -> Values:
        rows = [
            {
                "answer": [joined(inputs.references[row["image_id"]], start) for start in range(5)],
                "pred": joined([row["caption"], *inputs.references[row["image_id"]]], 0),
                "image_id": row["image_id"],
                "video_id": str(row["image_id"]),
            }
            for row in inputs.results
        ]
        names = ("bleu1", "bleu2", "bleu3", "bleu4", "meteor", "rougel", "cider")
        arguments = SimpleNamespace(output_path="lmms")
        return {name: float(getattr(module, f"{prefix}_{name}")(rows, arguments)) for name in names}

    return run


def youcook2(module: Any, inputs: Inputs) -> Values:
    """Segments of videos, three each, with one reference."""
    rows = [
        {"answer": inputs.references[row["image_id"]][0], "pred": row["caption"], "video": number // 3}
        for number, row in enumerate(inputs.results)
    ]
    return {name: float(getattr(module, f"youcook2_{name}")(rows)) for name in ("bleu4", "meteor", "rougel", "cider")}


def vlmevalkit(module: Any, inputs: Inputs) -> Values:
    """The scorer of COCO_VAL."""
    candidates = {str(n): [row["caption"]] for n, row in enumerate(inputs.results)}
    references = {str(n): inputs.references[row["image_id"]] for n, row in enumerate(inputs.results)}
    found = module.COCO_Caption_Scorer(candidates, references).compute_scores()
    return {f"Bleu_{n}": score for n, score in enumerate(found.pop("Bleu"), start=1)} | found


def coco_caption_eval(module: Any, inputs: Inputs) -> Values:
    """BLIP's, LAVIS's and PaddleMIX's function: folder of references, results, split."""
    del inputs
    return dict(module.coco_caption_eval(".", "results.json", "val").eval)


def mmpretrain(module: Any, inputs: Inputs) -> Values:
    """The same function with two arguments."""
    del inputs
    return dict(module.coco_caption_eval("results.json", "captions.json"))


def example(module: Any, inputs: Inputs) -> Values:
    """A script that has run when it is imported."""
    del inputs
    return dict(module.coco_eval.eval)


def eval_multi(module: Any, inputs: Inputs) -> Values:
    """Two captions per image: AllSPICE, the best and the mean of each score, mutual BLEU, self-CIDEr."""
    found: Values = {}
    for name in ("eval_allspice", "eval_oracle", "eval_div_stats", "eval_self_cider"):
        samples = [dict(row) for row in inputs.samples]
        found |= getattr(module, name)("coco", samples, "model", "val")["overall"]
    return {name: float(value) for name, value in found.items()}


def self_critical(module: Any, inputs: Inputs) -> Values:
    """Rewards of two samples per image over a greedy caption, on word indices."""
    words: dict[str, int] = {}

    def indices(caption: str) -> list[int]:
        numbers = [words.setdefault(word, len(words) + 1) for word in caption.lower().split()]
        return [*numbers, *[0] * (20 - len(numbers))][:20]

    by_image = [[r["caption"] for r in inputs.samples if r["image_id"] == image_id] for image_id in inputs.ids[:10]]
    samples = np.array([indices(caption) for captions in by_image for caption in captions])
    greedy = np.array([indices(captions[0]) for captions in by_image for _ in captions])
    references = [np.array([indices(text) for text in inputs.references[image_id]]) for image_id in inputs.ids[:10]]
    model = SimpleNamespace(sample=lambda *_: (Tensor(greedy), None))
    features = SimpleNamespace(data=None)
    rewards = module.get_self_critical_reward(model, features, features, {"gts": references}, Tensor(samples))
    return {"mean": float(rewards.mean()), "largest": float(rewards.max()), "rows": float(len(rewards))}


class Tensor:
    """As much of a torch tensor as the reward needs."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self.values = values

    def size(self, axis: int) -> int:
        """Return the length of an axis."""
        return int(self.values.shape[axis])

    def cpu(self) -> Tensor:
        """Return the tensor."""
        return self

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return the values."""
        return self.values


TASKS = {"coco_cap": "coco", "nocaps": "nocaps", "flickr30k": "flickr", "textcaps": "textcaps", "vatex": "vatex"}
SCRIPTS: dict[str, Callable[[Any, Inputs], Values]] = {
    **{f"lmms_eval/tasks/{task}/utils.py": lmms_eval(prefix) for task, prefix in TASKS.items()},
    "lmms_eval/tasks/detailcaps/utils.py": lmms_eval("detailcaps", sentences=3),
    "lmms_eval/tasks/youcook2/utils.py": youcook2,
    "vlmeval/dataset/image_caption.py": vlmevalkit,
    "lavis/tasks/captioning.py": coco_caption_eval,
    "paddlevlp/examples/blip2/utils.py": coco_caption_eval,
    "mmpretrain/evaluation/metrics/caption.py": mmpretrain,
    "coco_eval_example.py": example,
    "captioning/utils/eval_multi.py": eval_multi,
    "misc/rewards.py": self_critical,
}
NOT_IN_THE_ORIGINAL = {"captioning/utils/eval_multi.py", "misc/rewards.py"}
"""Scripts that import a fork, which pip does not install."""


def stand_ins(path: Path, inputs: Inputs) -> None:
    """Put stand-ins for what a script imports and is not here; those that compute have a function that does."""
    tree = ast.parse(path.read_text())
    package = ".".join(path.parent.parts)
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parent = package.rsplit(".", node.level - 1)[0] if node.level else ""
            names = [".".join(part for part in (parent, node.module) if part)]
            names += [f"{names[0]}.{alias.name}" for alias in node.names] if node.level and node.module is None else []
        for name in names:
            if not name.startswith(("pyco", "pycider")) and not is_there(name.split(".", maxsplit=1)[0]):
                stand_in(name)
    if "eval_utils" in sys.modules:
        from pycocotools.coco import COCO  # noqa: PLC0415 (the shim's or the installed one)

        sys.modules["eval_utils"].getCOCO = lambda _: COCO("captions.json")  # type: ignore[attr-defined]
        no_statistics = sys.modules["captioning.utils.div_utils"]
        no_statistics.compute_div_n = no_statistics.compute_global_div_n = lambda *_: (0.0, 0.0)  # type: ignore[attr-defined]
    submissions = "lmms_eval.tasks._task_utils.file_utils"
    if submissions in sys.modules:
        sys.modules[submissions].generate_submission_file = lambda name, _: str(Path(name).absolute())  # type: ignore[attr-defined]
    frequencies(inputs)


def is_there(name: str) -> bool:
    known = sys.modules.get(name)
    return importlib.util.find_spec(name) is not None if known is None else not isinstance(known, MagicMock)


def stand_in(name: str) -> None:
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        module = sys.modules.setdefault(".".join(parts[:end]), MagicMock(__path__=[], __spec__=None, __all__=[]))
        if end > 1:
            setattr(sys.modules[".".join(parts[: end - 1])], parts[end - 1], module)


def frequencies(inputs: Inputs) -> None:
    """Write `data/coco-train-idxs.p`, here of word indices as `misc/rewards.py` has them."""
    counts: Counter[tuple[str, ...]] = Counter()
    for texts in inputs.references.values():
        words = [[str(number) for number in range(len(text.split()))] for text in texts]
        counts.update({tuple(w[i : i + n]) for w in words for n in range(1, 5) for i in range(len(w) - n + 1)})
    Path("data").mkdir(exist_ok=True)
    content = {"document_frequency": dict(counts), "ref_len": 113_287}
    Path("data", "coco-train-idxs.p").write_bytes(pickle.dumps(content, protocol=2))


def no_java(event: str, arguments: tuple[object, ...]) -> None:
    """Stop the program when something starts a Java process."""
    if event in {"subprocess.Popen", "os.exec", "os.posix_spawn", "os.system"} and "java" in str(arguments[:2]):
        raise RuntimeError(f"a Java process was to start: {arguments}")


def load(path: Path) -> ModuleType:
    name = ".".join(path.with_suffix("").parts)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        sys.exit(f"{path}: cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--original", action="store_true", help="with pycocoevalcap and Java, without SPICE")
    options = parser.parse_args()
    folder = options.folder.resolve()
    if options.original:
        import pycocoevalcap.eval as original  # noqa: PLC0415 (before the shim would replace it)

        no_spice = SimpleNamespace(compute_score=lambda gts, _: (0.0, [0.0] * len(gts)), method=lambda: "SPICE")
        original.Spice = lambda: no_spice
    else:
        from spicegraph_compat import shim  # noqa: PLC0415 (not with the original)

        shim.install()
        sys.addaudithook(no_java)
    values: dict[str, Values] = {}
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        inputs = Inputs()
        for script, run in SCRIPTS.items():
            if not (folder / script).is_file() or (options.original and script in NOT_IN_THE_ORIGINAL):
                continue
            Path(script).parent.mkdir(parents=True, exist_ok=True)
            for file in (folder / script).parent.iterdir():  # some read a file that lies beside them
                if file.is_file():
                    Path(script).with_name(file.name).write_bytes(file.read_bytes())
            stand_ins(Path(script), inputs)
            with redirect_stdout(sys.stderr):
                values[script] = run(load(Path(script)), inputs)
    if not values:
        sys.exit(f"error: {folder}: holds none of the scripts: {', '.join(SCRIPTS)}")
    json.dump(values, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
