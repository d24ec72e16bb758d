#!/bin/sh
# `make fuzz-api`: generated requests over all operations of the OpenAPI document, against a sandbox of its own: scripts/api/fuzz.sh <target dir> <cargo>
# SEED= varies what is generated (default 20261130); REQUESTS= how many at least (default 10000).
set -eu
scripts/setup.sh api
scripts/api/venv.sh "$1"
"$2" build --locked
exec "$1/api-venv/bin/python" scripts/api/fuzz.py "$1"
