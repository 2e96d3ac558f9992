#!/usr/bin/env bash
# Parse COCO train2014 captions with CoreNLP 3.6.0: silver.sh OUT [CAPTIONS...]
#
# OUT gets parsed.conllu, and the files of captions where none are given. Parsing one caption takes about 20-50 ms of
# one core; a run that was stopped goes on where it ended. Java 17 and Maven are needed; CoreNLP (GPL) is only run.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
out=${1:?usage: silver.sh OUT [CAPTIONS...]}
shift
python=${PYTHON:-python3}
corenlp=edu.stanford.nlp:stanford-corenlp:3.6.0
repository=$out/maven
mkdir -p "$out/classes"

for artifact in $corenlp $corenlp:jar:models org.slf4j:slf4j-nop:1.7.36; do
    mvn --quiet --batch-mode dependency:get -Dmaven.repo.local="$repository" -Dartifact="$artifact"
done
path=$(find "$repository" -name '*.jar' \( -path '*stanford-corenlp*' -o -path '*slf4j*' -o -path '*xom*' -o -path '*joda-time*' \
    -o -path '*jollyday*' -o -path '*ejml*' -o -path '*javax.json*' \) | sort | tr '\n' ':')
javac -cp "$path" -d "$out/classes" "$here/SilverParser.java"

if [ $# -eq 0 ]; then
    jar=$("$python" -c 'import pathlib, pycocoevalcap as p; print(pathlib.Path(p.__path__[0]) / "spice" / "spice-1.0.jar")')
    "$python" "$here/captions.py" "$jar" "$out" --evaluation "$here"/../tests/golden/spice/*.jsonl.gz
    set -- "$out/edited.txt" "$out/lower.txt" "$out/bare.txt"
fi

# One of each file in turn, so that what is there when parsing stops is a fair mixture.
paste -d '\n' "$@" | sed '/^$/d' > "$out/captions.txt"
touch "$out/parsed.conllu"
# The last caption of a stopped run may be cut short: it is parsed again.
done=$(grep -c '^# newdoc' "$out/parsed.conllu" || true)
if [ "$done" -gt 0 ]; then
    last=$(grep -n '^# newdoc' "$out/parsed.conllu" | tail -1 | cut -d: -f1)
    head -n $((last - 1)) "$out/parsed.conllu" > "$out/parsed.part"
    mv "$out/parsed.part" "$out/parsed.conllu"
    done=$((done - 1))
fi
tail -n +$((done + 1)) "$out/captions.txt" |
    nice -n 15 java -XX:+UseSerialGC -Xmx3G -cp "$out/classes:$path" SilverParser >> "$out/parsed.conllu"
