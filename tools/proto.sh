#!/usr/bin/env bash
# Writes the Python code and type stubs of proto/ beside the .proto files, and what their comments say of a challenge's
# settings; where npm is present, lints the contract and compares it with the last release's, which proto/released.binpb
# holds (a set of file descriptors): what programs in the field rely on must not change.
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
folders=(spicegraph_api/v1 spicegraph_api/challenge/v1 spicegraph_api/rewards/v1 spicegraph_api/detail/v1 spicegraph_api/report/v1)

protoc() { PATH="$(dirname "$python"):$PATH" "$python" -m grpc_tools.protoc --proto_path=proto "$@"; }
for folder in "${folders[@]}"; do
  protoc --python_out="$generated" --mypy_out="$generated" --grpc_python_out="$generated" --mypy_grpc_out="$generated" \
    proto/"$folder"/*.proto
done

# A file without a service gives an empty *_pb2_grpc.py: nobody imports it.
for folder in "${folders[@]}"; do
  for file in "$generated/$folder"/*_pb2_grpc.py; do
    if ! grep -q 'class .*Stub' "$file"; then rm "$file" "${file}i"; fi
  done
done

# The comments of settings are the help of the command line and of the forms.
settings=spicegraph_api/challenge/v1
protoc --include_source_info --descriptor_set_out="$generated/set" proto/$settings/challenge.proto
"$python" tools/proto_comments.py "$generated/set" ChallengeSettings ChallengeSplit > "$generated/$settings/comments.json"

for folder in "${folders[@]}"; do
  if [[ "${1:-}" == --check ]]; then
    for file in "$generated/$folder"/*; do cmp "$file" "proto/$folder/$(basename "$file")"; done
  else
    rm -f proto/"$folder"/*_pb2*.py proto/"$folder"/*_pb2*.pyi
    find "$generated/$folder" -maxdepth 1 -type f -exec cp {} "proto/$folder/" \;
  fi
done

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
