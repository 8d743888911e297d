#!/usr/bin/env bash
# Prints the packages that the race detector has something to see in: those whose own files start
# goroutines or synchronise them, and the native backend, whose steps run through all of them. Not
# the kernels in impls, which is arithmetic, not the programs that measure, attack and break, and
# not the command train, whose tests kill and time whole programs. Nor the model: it computes in one
# goroutine, the native backend runs its steps, and make race tests it with invariants.
set -euo pipefail
cd "$(dirname "$0")/.."

module=$(go list -m)
go list -f '{{$dir := .Dir}}{{.ImportPath}}{{range .GoFiles}} {{$dir}}/{{.}}{{end}}' ./... |
	while read -r package files; do
		case $package in
		"$module"/impls/* | "$module"/internal/benchmarks* | "$module"/internal/chaos* | "$module"/internal/mutants* | "$module"/examples/* | "$module"/cmd/primus/command/internal/train | "$module"/internal/native/model) ;;
		"$module"/runtime/backends/native | "$module"/internal/native/memory) echo "$package" ;;
		*) if grep -qE '^[[:space:]]*go (func\(|[[:alnum:]_.]+\()|^[[:space:]]*(import )?"sync(/atomic)?"' $files </dev/null; then echo "$package"; fi ;;
		esac
	done
