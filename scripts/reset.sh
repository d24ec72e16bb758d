#!/bin/sh
# Removes a data directory, with a database cluster that had to be kept elsewhere (src/db/embedded/home.rs).
set -eu
data=$1
[ -d "$data" ] || exit 0
[ -e "$data/postgres/lock" ] || [ -e "$data/jwt-secret" ] || {
    echo "reset: $data does not look like a data directory of Rigmark" >&2
    exit 1
}
if [ -e "$data/postgres/lock" ] && have_flock=$(command -v flock) && ! "$have_flock" -n "$data/postgres/lock" true; then
    echo "reset: Rigmark is running on $data; stop it first" >&2
    exit 1
fi
if [ -e "$data/postgres/location" ]; then
    elsewhere=$(cat "$data/postgres/location")
    case "$elsewhere" in /var/lib/rigmark-*) rm -rf "$elsewhere" ;; esac
fi
rm -rf "$data"
echo "reset: $data is gone"
