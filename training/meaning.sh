#!/usr/bin/env bash
# Train the table of meanings: texts, teacher, table. Run by `make meaning`; needs torch and safetensors (requirements.txt).
set -euo pipefail
: "${SILVER:?folder of COCO's parses}" "${CAPTIONS:?folder of the other captions}" "${HELD_OUT:?held_out.sha1.gz}"
: "${RATED:?folder of the rated sets}" "${GOLDEN:?folder of the golden files}" "${MINILM:?folder model of the wheel in teacher.txt}"
work=${WORK:-training/work/meaning}
mkdir -p "$work"
export OMP_NUM_THREADS=1
mapfile -t rated < <(find "$RATED" "$GOLDEN" -name '*.jsonl.gz' | LC_ALL=C sort)
python training/meaning_texts.py --silver "$SILVER" --captions "$CAPTIONS" --held-out-hashes "$HELD_OUT" --rated "${rated[@]}" --out "$work/texts.tsv.gz"
python training/meaning_teacher.py "$work/texts.tsv.gz" --model "$MINILM" --out "$work/minilm.npy"
python training/meaning.py "$work/texts.tsv.gz" --teacher "$work/minilm.npy" --seed 2 \
    --out wings/spicegraph_graded/spice_g/data/meaning_en.npz
