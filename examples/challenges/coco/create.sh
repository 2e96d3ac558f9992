#!/usr/bin/env bash
# Creates the COCO captioning challenge as its evaluation server had it: val2014 against five references, test2014 against
# five (c5) and forty (c40), all scores of the toolkit on its tokens, ranked by CIDEr; the board of test2014 opens with c40.
# Usage: examples/challenges/coco/create.sh FOLDER [NAME]
#   FOLDER holds captions_val2014.json, captions_test2014_c5.json and captions_test2014_c40.json (COCO annotations).
# Needs SPICEGRAPH_SERVER and SPICEGRAPH_TOKEN, an organiser's; more options go behind: ... FOLDER coco --opens 2030-01-01
set -euo pipefail
folder=$1
name=${2:-coco}
spicegraph challenge create "$name" --title "COCO captions" --metrics coco --rank-by CIDEr \
  --references "val2014/c5=$folder/captions_val2014.json" \
  --references "test2014/c40=$folder/captions_test2014_c40.json" \
  --references "test2014/c5=$folder/captions_test2014_c5.json" \
  --daily 4 --total 10 --public-board yes \
  --description "Results for val2014 and test2014, a file each or both in a zip: captions_SPLIT_METHOD_results.json." \
  "${@:3}"
spicegraph challenge update "$name" --split test2014 --phase-daily 2 --phase-total 5
