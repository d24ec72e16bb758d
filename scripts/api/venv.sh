#!/bin/sh
# Makes the private Python of the API's checks, target/api-venv, as scripts/api/requirements.txt says: scripts/api/venv.sh <target dir>
set -eu
venv=$1/api-venv
wanted=$(cat scripts/api/requirements.txt)
if [ -x "$venv/bin/python" ] && [ "$(cat "$venv/wanted.txt" 2>/dev/null)" = "$wanted" ]; then exit 0; fi
echo "api: installing schemathesis and openapi-python-client into $venv (from PyPI, about 20 s)"
rm -rf "$venv"
python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement scripts/api/requirements.txt
echo "$wanted" >"$venv/wanted.txt"
