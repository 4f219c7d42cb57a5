#!/bin/sh
# Writes the Python of the protocol beside its .proto files. Called by `make proto` with the environment's bin on PATH.
set -eu
cd "$(dirname "$0")"
find mycelium -name '*_pb2.py*' -delete
find mycelium -name '*.proto' | sort | xargs python -m grpc_tools.protoc -I . --python_out=. --mypy_out=quiet:.
