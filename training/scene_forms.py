"""Give a scene parser's network more word forms: the commonest of the caption pipeline's, with that one's numbers.

Captions of charts, scans and machines have words that captions of photographs lack; a word without a row of its own is
read by its letters alone. Which forms are common says ``wordfreq``.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from wordfreq import zipf_frequency

import export
from spicegraph_parser.caption_pipeline.encoder import KINDS, Vocabulary, read_weights

TABLE = f"words.tables.{KINDS.index('form')}"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("network", type=Path, help="folder of the network, which began as the pipeline's")
    parser.add_argument("--start", type=Path, required=True, help="folder of the caption pipeline's network")
    parser.add_argument("--forms", type=int, default=20_000, help="how many forms the network knows then")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    lists = json.loads((options.network / "vocabulary.json").read_bytes())
    weights, given = (read_weights((own / "network.npz").read_bytes()) for own in (options.network, options.start))
    pipeline = Vocabulary.from_lists(json.loads((options.start / "vocabulary.json").read_bytes()))
    [rows] = (own for kind, own in zip(KINDS, pipeline.rows, strict=True) if kind == "form")
    fresh = [form for form in rows if form.isalpha() and form not in set(lists["form"])]
    fresh.sort(key=lambda form: (-zipf_frequency(form, "en"), form))
    fresh = fresh[: max(0, options.forms - len(lists["form"]))]
    weights[TABLE] = np.concatenate([weights[TABLE], given[TABLE][[rows[form] for form in fresh]]])
    options.out.mkdir(parents=True, exist_ok=True)
    np.savez(options.out / "network.npz", allow_pickle=False, **export.compact(weights, matrices=True))
    text = json.dumps(lists | {"form": lists["form"] + fresh}, ensure_ascii=False, separators=(",", ":"))
    (options.out / "vocabulary.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
