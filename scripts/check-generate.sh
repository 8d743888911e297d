#!/usr/bin/env bash
# Fails when go generate changes a file. Changes that were there before it runs,
# committed or not, do not count.
set -euo pipefail
cd "$(dirname "$0")/.."

state() {
	git ls-files -z --cached --others --exclude-standard | xargs -0 sha256sum 2>/dev/null | sort -k 2 || true
}

before=$(state)
go generate ./...
after=$(state)

if [[ "$before" != "$after" ]]; then
	echo "go generate changes the tree; run it and commit the result:"
	diff <(echo "$before") <(echo "$after") | awk '/^[<>]/ { print $3 }' | sort -u
	exit 1
fi
