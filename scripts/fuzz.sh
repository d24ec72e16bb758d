#!/bin/sh
# `make fuzz`: scripts/fuzz.sh <target dir> <cargo>
# SECONDS_EACH= how long each target runs (default 60), TARGET= one of them alone. What was found stays in <target dir>/fuzz/corpus, so that the
# next run, also after Ctrl-C, goes on from there. An input that breaks something is kept in <target dir>/fuzz/crashes.
set -eu
scripts/setup.sh fuzz
out=$1/fuzz
cargo=$2
documents=tests/documents
host=$(rustc -vV | sed -n 's/^host: //p')
all=$(sed -n 's/^path = "targets\/\(.*\)\.rs"$/\1/p' fuzz/Cargo.toml)
targets=${TARGET:-$all}
for target in $targets; do
    echo "$all" | grep -qx "$target" || {
        echo "fuzz: there is no target $target; there are" $all >&2
        exit 1
    }
done

# What cargo-fuzz passes, without the sanitizers, which stable Rust does not have. With --target, build scripts and macros stay as they are.
coverage="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
coverage="$coverage -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
echo "fuzz: building; the first time takes some minutes"
# The program's own versions, and what is not among them beside.
cp Cargo.lock fuzz/Cargo.lock
RUSTFLAGS=$coverage CARGO_TARGET_DIR=$out "$cargo" build --release --bins --manifest-path fuzz/Cargo.toml --target "$host"

mkdir -p "$out/crashes" "$out/seeds"
# Each line of $1 as a file in $2, without the line's end.
write_lines() {
    number=0
    while IFS= read -r line; do
        number=$((number + 1))
        printf '%s' "$line" >"$2/line-$number"
    done <"$1"
}
write_seeds() {
    rm -rf "$out/seeds/$1"
    mkdir -p "$out/seeds/$1" "$out/corpus/$1"
    case $1 in
    assess | json)
        # Two of everything is as good as all of it, and many times as fast.
        for document in "$documents"/*.json; do
            name=$(basename "$document" .json)
            jq -c 'walk(if type == "array" then .[:2] else . end)' "$document" >"$out/seeds/$1/$name-2"
            [ "$1" = assess ] || gzip -n <"$out/seeds/$1/$name-2" >"$out/seeds/$1/$name-2.gz"
        done
        cp "$documents/v04_prefill_only.json" "$documents/v04_dead_server.json" "$out/seeds/$1/"
        jq -c '{document: ., machine_id: null, visibility: "public"}' "$documents/v04_prefill_only.json" >"$out/seeds/$1/envelope"
        ;;
    redaction)
        for document in "$documents"/*.json; do
            name=$(basename "$document" .json)
            jq -r '[.. | strings | select(length > 8)] | unique[]' "$document" | head -c 4000 >"$out/seeds/$1/$name"
        done
        write_lines fuzz/seeds/commands.txt "$out/seeds/$1"
        ;;
    *) write_lines fuzz/seeds/texts.txt "$out/seeds/$1" ;;
    esac
}

# Words of documents, for mutations that stay near them.
jq -r '[.. | objects | keys[]] | .[] | select(test("^[A-Za-z0-9_]{2,40}$")) | "\"\(.)\""' "$documents"/v04_*.json "$documents"/synthetic_*.json |
    sort -u >"$out/words.dict"

failed=
for target in $targets; do
    write_seeds "$target"
    case $target in assess | json) more="-dict=$out/words.dict -max_len=131072" ;; *) more="-max_len=4096" ;; esac
    echo "fuzz: $target for ${SECONDS_EACH:-60} s"
    # What an input may take is bounded by the target itself; this bounds the process.
    # shellcheck disable=SC2086 # words on purpose
    "$out/$host/release/$target" "$out/corpus/$target" "$out/seeds/$target" -artifact_prefix="$out/crashes/$target-" $more \
        -max_total_time="${SECONDS_EACH:-60}" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 >"$out/$target.log" 2>&1 || {
        status=$?
        # What it found, without the thousand lines of how it got there.
        grep -avE '^#[0-9]+\s+(NEW|REDUCE|pulse|RELOAD|INITED)|^\s+NEW_FUNC|^###|^"' "$out/$target.log" | tail -n 60 >&2
        # libFuzzer's own number for SIGINT and SIGTERM.
        [ "$status" -ne 72 ] && [ "$status" -ne 130 ] || exit 130
        failed="$failed $target"
        continue
    }
    sed -n 's/^#\([0-9]*\)\s*DONE\s*cov: \([0-9]*\).*/fuzz:   \1 inputs, \2 places reached/p' "$out/$target.log"
done
[ -z "$failed" ] || {
    echo "fuzz: failed:$failed. The inputs are in $out/crashes; $out/$host/release/<target> <input> repeats one." >&2
    exit 1
}
