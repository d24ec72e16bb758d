#!/bin/sh
# Remakes the pictures of README.md out of a running demo (`make run`): scripts/pictures.sh [URL] [FOLDER]
# Needs chromium, curl and jq. Each picture is the top of a page in a light desktop window, a little smaller than life: under 200 KB each.
set -eu
url=${1:-http://127.0.0.1:8080}
folder=${2:-docs/pictures}
profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT
mkdir -p "$folder"

picture() { # name, height, path
  chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
    --disable-component-update --disable-sync --hide-scrollbars --disable-lcd-text --force-device-scale-factor=0.75 --user-data-dir="$profile" \
    --window-size="1280,$2" --screenshot="$folder/$1.png" "$url$3" 2>/dev/null
  echo "$folder/$1.png: $(wc -c <"$folder/$1.png") bytes"
}

run=$(curl -fsS "$url/api/v1/matrix-runs?by=sandberg&limit=1" | jq -r '.data[0].id')
picture run 1640 "/en/runs/$run"
picture market 800 "/en/marketplace?model=Nemotron-Cascade-2-30B-A3B&quantization=awq-4bit&context=8k&concurrency=4&include_unavailable=true"
