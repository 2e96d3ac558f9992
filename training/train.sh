#!/usr/bin/env bash
# From captions to the bundled pipeline: train.sh OUT [FILE...]
#
# FILE are captions (KIND.txt or KIND.txt.gz, one per line) or, instead, parses that you have (KIND.conllu or
# KIND.conllu.gz). Captions are parsed first, and those of COCO train2014 with them: five hours on one core for all.
# The names of kinds decide what is held out and how often a kind is seen: heldout.py, config.toml. The pipeline is
# written to OUT/en_caption and compared with held-out captions and the golden files. Copy it over
# parser/spicegraph_parser/en_caption to ship it. START names the folder of a network (network.npz, vocabulary.json) to
# go on from, HELD_OUT_HASHES (needed) files of hashes of texts that nothing is trained on (heldout.py), SEEDS the runs to be made side by side, a core each: what is written is the mean of their weights. TEACHERS
# names folders of networks and TEXTS files of captions without parses: what the teachers think of these is learnt, too.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
out=${1:?usage: train.sh OUT [FILE...]}
shift
golden=$here/../tests/golden/spice
evaluation=("$golden/spice_parses.jsonl.gz" "$golden/spice_parses_lower.jsonl.gz" "$golden/spice_scores.jsonl.gz")
hashes=(--held-out-hashes ${HELD_OUT_HASHES:?files of the hashes of held-out texts})
mkdir -p "$out"

# Torch is needed for training only, so it gets a virtual environment of its own; PYTHON names one that is ready.
if [ -z "${PYTHON:-}" ]; then
    [ -x "$out/venv/bin/python" ] || python3 -m venv "$out/venv"
    "$out/venv/bin/python" -m pip install --quiet "$here/.." -r "$here/requirements.txt"
    PYTHON=$out/venv/bin/python
fi

case ${1:-} in
*.conllu | *.conllu.gz) ;;
*)
    jar=$("$PYTHON" -c 'import pathlib, pycocoevalcap as p; print(pathlib.Path(p.__path__[0]) / "spice" / "spice-1.0.jar")')
    "$PYTHON" "$here/captions.py" "$jar" "$out/texts" --others "$@" --evaluation "${evaluation[@]}" "${hashes[@]}"
    "$here/silver.sh" "$out/silver" "$out"/texts/*.txt
    "$PYTHON" "$here/vocabulary.py" "$out"/silver/*.conllu --out "$out/vocabulary.txt" "${hashes[@]}"
    "$here/silver.sh" "$out/silver" "$out/vocabulary.txt"
    set -- "$out"/silver/*.conllu
    ;;
esac
# One thread: more do not help sentences this short, and the order of additions stays the same.
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
runs=()
waiting=()
for seed in ${SEEDS:-1}; do
    "$PYTHON" "$here/train.py" "$@" --config "${CONFIG:-$here/config.toml}" --evaluation "${evaluation[@]}" --seed "$seed" "${hashes[@]}" \
        --out "$out/run$seed" ${START:+--start "$START"} ${TEACHERS:+--teachers $TEACHERS --texts $TEXTS} &
    runs+=("$out/run$seed")
    waiting+=($!)
done
for process in "${waiting[@]}"; do wait "$process"; done
"$PYTHON" "$here/export.py" "$out/network" "${runs[@]}"
"$PYTHON" "$here/rerank.py" "$out/network" "$@" --evaluation "${evaluation[@]}" --out "$out/reranked" "${hashes[@]}"
"$PYTHON" "$here/lemma_table.py" "$@" --evaluation "${evaluation[@]}" --out "$out/lemmas/exceptions.json" "${hashes[@]}"
"$PYTHON" "$here/package.py" "$out/reranked" "$out/lemmas" "$out/en_caption"
"$PYTHON" "$here/evaluate.py" "$out/en_caption" --held-out "$@" --parses "${evaluation[@]:0:2}" --scores "${evaluation[2]}"
