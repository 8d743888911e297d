#!/bin/sh
# Trains a model in f32, bf16, fp16 and with the recipes of fp8 from the same seed and compares the
# losses: the mean of each 50 steps in a row, and the last validation. "rounding" is f32 with another
# adam_eps in the fifth digit, which shows how far small differences alone lead.
# scripts/precision.sh [EXPERIMENT [STEPS [DIRECTORY [PRECISIONS]]]]
set -eu
cd "$(dirname "$0")/.."
experiment=${1:-examples/native/configs/llama_2M-pretrain.yaml}
steps=${2:-500}
dir=${3:-$(mktemp -d)}
precisions=${4:-rounding bf16 fp16 tensorwise delayed blockwise mxfp8}
mkdir -p bin "$dir"
CGO_ENABLED=0 go build -o bin/primus ./cmd/primus

for name in f32 $precisions; do
	case $name in
	f32) switch= ;;
	tensorwise | delayed | blockwise | mxfp8) switch="bf16=true fp8=hybrid fp8_recipe=$name" ;;
	rounding) switch=adam_eps=1.0001e-8 ;;
	*) switch=$name=true ;;
	esac
	# fp16 begins with a factor that does not overflow, so that every step is an update.
	bin/primus train pretrain --config "$experiment" "workspace=$dir" exp_name="$name" load=none \
		train_iters="$steps" lr_decay_iters="$steps" save_interval=0 initial_loss_scale=1024 $switch >"$dir/$name.txt" 2>&1 ||
		{ tail -5 "$dir/$name.txt"; exit 1; }
	sed 's/.*"loss":\([-0-9.e+]*\).*/\1/' "$(find "$dir" -path "*/$name/metrics.jsonl")" >"$dir/$name.losses"
	sed -n 's/.*"valid_loss":\([-0-9.e+]*\).*/\1/p' "$(find "$dir" -path "*/$name/metrics.jsonl")" | tail -1 >"$dir/$name.valid"
done

for name in $precisions; do
	paste "$dir/f32.losses" "$dir/$name.losses" | awk -v name="$name" -v valid="$(cat "$dir/f32.valid" "$dir/$name.valid" | tr '\n' ' ')" '
		{
			a[NR] = $1; b[NR] = $2; sa += $1; sb += $2
			if (NR > 50) { sa -= a[NR-50]; sb -= b[NR-50] }
			if (NR >= 50) { d = (sb - sa) / sa; d = d < 0 ? -d : d; if (d > most) { most = d; at = NR } }
		}
		END {
			split(valid, v, " ")
			printf "%-10s  means of 50 steps differ by at most %.2f %% (step %d); last validation %.4f beside %.4f, %+.2f %%\n",
				name, 100 * most, at, v[2], v[1], 100 * (v[2] - v[1]) / v[1]
		}'
done
