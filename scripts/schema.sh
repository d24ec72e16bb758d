#!/bin/sh
# Writes src/db/schema.rs from migrations/: scripts/schema.sh <target dir> <cargo>
# When the code is ahead of schema.rs it does not compile; a test program that was built before knows how to write the file as well.
set -eu
export RIGMARK_UPDATE_SCHEMA=1
"$2" test --locked --test it schema_rs && exit 0
built=$(ls -t "$1"/debug/deps/it-* 2>/dev/null | grep -v '\.d$' | head -n 1)
[ -n "$built" ] || {
    echo "schema: the code does not compile, and no test program was built before" >&2
    exit 1
}
echo "schema: the code does not compile with the present schema.rs; using the test program built before"
"$built" schema_rs
