#!/bin/sh
# `make client-test`: generates a client from openapi/rigmark.json and does the main job with it: scripts/api/client.sh <target dir> <cargo>
set -eu
scripts/setup.sh api
scripts/api/venv.sh "$1"
"$2" build --locked
exec "$1/api-venv/bin/python" scripts/api/client.py "$1"
