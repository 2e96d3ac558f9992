#!/usr/bin/env bash
# Writes the Python code and type stubs of proto/ beside the .proto files, and lints the contract where npm is present.
# Usage: tools/proto.sh [--check]     --check fails if the committed code is not what the .proto files give.
# Needs the development requirements (PYTHON names the interpreter, default .venv/bin/python).
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
buf_version=1.75.0
generated=$(mktemp -d)
trap 'rm -rf "$generated"' EXIT

PATH="$(dirname "$python"):$PATH" "$python" -m grpc_tools.protoc --proto_path=proto \
  --python_out="$generated" --mypy_out="$generated" --grpc_python_out="$generated" --mypy_grpc_out="$generated" \
  proto/spicegraph_api/v1/*.proto

# A file without a service gives an empty *_pb2_grpc.py: nobody imports it.
for file in "$generated"/spicegraph_api/v1/*_pb2_grpc.py; do
  if ! grep -q 'class .*Stub' "$file"; then rm "$file" "${file}i"; fi
done

if [[ "${1:-}" == --check ]]; then
  for file in "$generated"/spicegraph_api/v1/*; do
    cmp "$file" "proto/spicegraph_api/v1/$(basename "$file")"
  done
else
  rm -f proto/spicegraph_api/v1/*_pb2*.py proto/spicegraph_api/v1/*_pb2*.pyi
  cp "$generated"/spicegraph_api/v1/* proto/spicegraph_api/v1/
fi

if command -v npm > /dev/null; then
  (cd proto && npm exec --yes --package="@bufbuild/buf@$buf_version" -- buf lint)
  if git describe --tags --abbrev=0 > /dev/null 2>&1; then
    release=$(git describe --tags --abbrev=0)
    (cd proto && npm exec --yes --package="@bufbuild/buf@$buf_version" -- \
      buf breaking --against "../.git#tag=$release,subdir=proto")
  fi
else
  echo "npm is not installed: buf lint skipped" >&2
fi
