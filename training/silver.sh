#!/usr/bin/env bash
# Parse captions with CoreNLP 3.6.0: silver.sh OUT KIND.txt...
#
# Each file of captions, one per line, becomes OUT/KIND.conllu. Parsing one caption takes about 20-50 ms of one core; a
# run that was stopped goes on where it ended. Java 17 and Maven are needed; CoreNLP (GPL) is only run.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
out=${1:?usage: silver.sh OUT KIND.txt...}
shift
corenlp=edu.stanford.nlp:stanford-corenlp:3.6.0
repository=$out/maven
mkdir -p "$out/classes"

for artifact in $corenlp $corenlp:jar:models org.slf4j:slf4j-nop:1.7.36; do
    mvn --quiet --batch-mode dependency:get -Dmaven.repo.local="$repository" -Dartifact="$artifact"
done
path=$(find "$repository" -name '*.jar' \( -path '*stanford-corenlp*' -o -path '*slf4j*' -o -path '*xom*' -o -path '*joda-time*' \
    -o -path '*jollyday*' -o -path '*ejml*' -o -path '*javax.json*' \) | sort | tr '\n' ':')
javac -cp "$path" -d "$out/classes" "$here/SilverParser.java"

for captions in "$@"; do
    parsed=$out/$(basename "${captions%.txt}").conllu
    touch "$parsed"
    # The last caption of a stopped run may be cut short: it is parsed again.
    done=$(grep -c '^# newdoc' "$parsed" || true)
    if [ "$done" -gt 0 ]; then
        last=$(grep -n '^# newdoc' "$parsed" | tail -1 | cut -d: -f1)
        head -n $((last - 1)) "$parsed" > "$parsed.part"
        mv "$parsed.part" "$parsed"
        done=$((done - 1))
    fi
    tail -n +$((done + 1)) "$captions" |
        nice -n 15 java -XX:+UseSerialGC -Xmx3G -cp "$out/classes:$path" SilverParser >> "$parsed"
done
