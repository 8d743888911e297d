#!/bin/bash
# Makes the pictures of README.md: the page of a run that trains, and the plot of its loss.
#
#   scripts/pictures.sh docs/images
#
# STEPS is the number of steps, PRIMUS the program. It needs chromium and the packages of npm that
# make site-env installs.
set -euo pipefail

dir=${1:?a folder for the pictures}
primus=${PRIMUS:-bin/primus}
steps=${STEPS:-600}
work=$(mktemp -d)
run=
trap '[[ -z $run ]] || kill "$run" 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir -p "$dir"

"$primus" train --config llama_2M-pretrain workspace="$work/output" load=none \
	"train_iters=$steps" "lr_decay_iters=$steps" eval_interval=$((steps / 4)) final_eval_windows=8 log_interval=1 \
	--serve 127.0.0.1:0 --linger 10m >"$work/log" 2>&1 &
run=$!

# The picture is taken when three quarters are trained. The service stays until its metrics are read.
until grep -q "step $((steps * 3 / 4))/$steps" "$work/log"; do
	kill -0 "$run" 2>/dev/null || { cat "$work/log" >&2; exit 1; }
	sleep 0.2
done
url=$(grep -o 'http://127.0.0.1:[0-9]*' "$work/log" | head -1)
node scripts/picture.mjs "$url/" "$work/page.png"
while kill -0 "$run" 2>/dev/null; do
	curl -s "$url/metrics" >/dev/null || true
	sleep 0.5
done
wait "$run" || { cat "$work/log" >&2; exit 1; }
run=
cp "$work/page.png" "$dir/page.png"
cp "$work"/output/*/*/*/loss.png "$dir/loss.png"
