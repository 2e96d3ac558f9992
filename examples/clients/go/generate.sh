#!/usr/bin/env bash
# Writes gen/ from the .proto files. Needs go, and protoc: the one of grpcio-tools serves (PYTHON names the interpreter).
set -euo pipefail
cd "$(dirname "$0")"
python=${PYTHON:-../../../.venv/bin/python}
protos=${SPICEGRAPH_PROTO:-../../../proto}
mkdir -p gen bin
GOBIN="$PWD/bin" go install google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc
PATH="$PWD/bin:$PATH" "$python" -m grpc_tools.protoc --proto_path="$protos" \
  --go_out=. --go_opt=module=example.com/spicegraph --go-grpc_out=. --go-grpc_opt=module=example.com/spicegraph \
  "$protos"/spicegraph_api/{v1,report/v1}/*.proto
