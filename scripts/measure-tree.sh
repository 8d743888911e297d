#!/usr/bin/env bash
# Prints how large the tree is, as a table in Markdown: packages, those that others can import, the
# names that they export, lines, and the size of what make build makes. With a commit, the table has
# a column for it and one for the working tree.
#
#   usage: scripts/measure-tree.sh [COMMIT]
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'git worktree remove --force "$work/tree" 2>/dev/null || true; rm -rf "$work"' EXIT
CGO_ENABLED=0 go build -o "$work/treestats" ./internal/treestats

# measure prints a name and a value a line for the tree in a folder.
measure() {
	"$work/treestats" "$1"
	make -s -C "$1" build BIN="$work/primus" VERSION=v0.0.0
	printf 'size of bin/primus in bytes\t%d\n' "$(stat -c %s "$work/primus")"
}

# table prints columns that tabs separate as Markdown.
table() { sed -e 's/\t/ | /g' -e 's/^/| /' -e 's/$/ |/' -e '1a |---|---:|'"${commit:+---:|}"; }

commit=${1:-}
measure . >"$work/now"
if [[ -z $commit ]]; then
	{ printf 'what\tnow\n' && cat "$work/now"; } | table
	exit
fi
git worktree add --quiet --detach "$work/tree" "$commit"
measure "$work/tree" >"$work/before"
{ printf 'what\t%s\tnow\n' "$(git rev-parse --short "$commit")" && join -t "$(printf '\t')" <(sort "$work/before") <(sort "$work/now"); } | table
