#!/usr/bin/env bash
# Tests the kernels of arm64 on another machine, where QEMU runs them: the kernels themselves, the
# conformance kit for some impls of flagos, and losses of a training run beside those of amd64. It
# installs Debian's qemu-user-static where it can, and says why it skips where it cannot.
#
#   usage: scripts/test-arm64.sh [all]      all runs every test of these packages
set -euo pipefail
cd "$(dirname "$0")/.."

all=${1:-}
if [[ -n $all && $all != all ]]; then
	echo "usage: $0 [all]" >&2
	exit 2
fi
qemu=qemu-aarch64-static
run=(-exec "$qemu")
if [[ $(uname -m) == aarch64 ]]; then
	run=()
elif ! command -v $qemu >/dev/null; then
	if command -v apt-get >/dev/null && [[ $(id -u) -eq 0 ]]; then
		timeout 200 apt-get -qq -o Acquire::Retries=1 install -y --no-install-recommends qemu-user-static >/dev/null || true
	fi
	if ! command -v $qemu >/dev/null; then
		echo "test-arm64: skipped, there is no $qemu and no way to install it: apt-get install qemu-user-static"
		exit 0
	fi
fi

# Plugins need a dynamic linker for arm64, so nopurego leaves them out.
arm64() { CGO_ENABLED=0 GOARCH=arm64 go test -tags nopurego "${run[@]}" -timeout 30m "$@"; }

short=(-short)
[[ $all == all ]] && short=()
arm64 "${short[@]}" ./internal/cpufeat ./internal/kernel/...
arm64 "${short[@]}" ./tensor ./opregistry
if [[ $all == all ]]; then
	arm64 ./opmanager ./impls/flagos ./runtime/backends/native
else
	ops='generic_gemm|fused_attn_fwd|scaled_softmax_forward|cross_entropy_fwd|swiglu|multi_tensor_adam'
	arm64 -run "^TestConformance\$/^($ops)\$" -short ./impls/flagos
	arm64 -run '^TestLossesOfEveryMachine$' ./runtime/backends/native
fi
