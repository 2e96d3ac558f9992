#!/usr/bin/env bash
# From captions to the bundled pipeline: train.sh OUT [SILVER...]
#
# SILVER are CoNLL-U parses (gzipped or not); without any, COCO's train2014 captions are parsed first (about three
# hours on one core for all of them; stop silver.sh at any time, and give its parsed.conllu here). From the first two
# files some captions are held out. The pipeline is written to OUT/en_caption and, if all goes well, compared with
# the golden files. Copy it over parser/spicegraph_parser/en_caption to ship it.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
out=${1:?usage: train.sh OUT [SILVER...]}
shift
golden=$here/../tests/golden/spice
evaluation=("$golden/spice_parses.jsonl.gz" "$golden/spice_parses_lower.jsonl.gz" "$golden/spice_scores.jsonl.gz")
mkdir -p "$out"

# Torch is needed for training only, so it gets a virtual environment of its own; PYTHON names one that is ready.
if [ -z "${PYTHON:-}" ]; then
    [ -x "$out/venv/bin/python" ] || python3 -m venv "$out/venv"
    "$out/venv/bin/python" -m pip install --quiet "$here/.." -r "$here/requirements.txt"
    PYTHON=$out/venv/bin/python
fi
export PYTHON

if [ $# -eq 0 ]; then
    "$here/silver.sh" "$out/silver"
    set -- "$out/silver/parsed.conllu"
fi
# One thread: more do not help sentences this short, and the order of additions stays the same.
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
"$PYTHON" "$here/train.py" "$@" --config "${CONFIG:-$here/config.toml}" --evaluation "${evaluation[@]}" --out "$out/network"
"$PYTHON" "$here/lemma_table.py" "$@" --evaluation "${evaluation[@]}" --out "$out/lemmas/exceptions.json"
"$PYTHON" "$here/package.py" "$out/network" "$out/lemmas" "$out/en_caption"
"$PYTHON" "$here/evaluate.py" "$out/en_caption" --parses "${evaluation[@]:0:2}" --scores "${evaluation[2]}"
