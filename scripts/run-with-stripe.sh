#!/bin/sh
# `make run STRIPE=local`: the server in test mode against the Stripe double, with webhooks, until Ctrl-C.
# scripts/run-with-stripe.sh <target dir> <data dir>
#
# The double forgets everything when it stops, so the data directory is this run's own and goes with it.
set -eu
target=$1
data=$2/stripe-local
double_bind=${STRIPE_DOUBLE_BIND:-127.0.0.1:12111}
bind=${RIGMARK_BIND:-127.0.0.1:8080}
double=

random_hex() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }
end() {
    [ -z "$double" ] || kill "$double" 2>/dev/null || true
    [ -z "$double" ] || wait "$double" 2>/dev/null || true
    [ ! -e "$data" ] || scripts/reset.sh "$data"
}
# Ctrl-C reaches the server by itself; the double, in the background, does not hear it.
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

[ ! -e "$data" ] || scripts/reset.sh "$data"
"$target/release/examples/stripe_double" --bind "$double_bind" --webhook "http://$bind/api/v1/stripe/events" --secret whsec_local &
double=$!
sleep 1
kill -0 "$double" 2>/dev/null || {
    echo "run: the Stripe double does not start on $double_bind (STRIPE_DOUBLE_BIND chooses another)" >&2
    exit 1
}
unset DATABASE_URL DATABASE_REPLICA_URL
export RIGMARK_BIND="$bind" RIGMARK_DATA_DIR="$data" RIGMARK_JWT_SECRET="$(random_hex)" RIGMARK_ENCRYPTION_KEY="$(random_hex)"
export STRIPE_SECRET_KEY=sk_test_local STRIPE_WEBHOOK_SECRET=whsec_local STRIPE_API_BASE="http://$double_bind"
"$target/release/rigmark" serve
