#!/usr/bin/env bash
# Writes the Python code and type stubs of proto/ beside the .proto files; where npm is present, lints the contract and
# compares it with the last release's, which proto/released.binpb holds (a set of file descriptors): what programs in the
# field rely on must not change.
# Usage: tools/proto.sh [--check | --release]
#   --check     fails if the committed code is not what the .proto files give
#   --release   makes the present contract the released one: part of a release
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
  cd proto
  buf() { npm exec --yes --package="@bufbuild/buf@$buf_version" -- buf "$@"; }
  buf lint
  buf breaking --against released.binpb
  if [[ "${1:-}" == --release ]]; then buf build --exclude-source-info --output released.binpb; fi
else
  echo "npm is not installed: the contract is not linted, nor compared with the released one" >&2
  if [[ "${1:-}" == --release ]]; then exit 1; fi
fi
