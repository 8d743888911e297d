#!/usr/bin/env bash
# Builds libprimus.so and its headers into lib and include below a folder. It needs a C compiler.
set -euo pipefail
if [[ $# -ne 1 ]]; then
	echo "usage: $0 FOLDER" >&2
	exit 2
fi
mkdir -p "$1/lib" "$1/include"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
version=${VERSION:-$(git describe --tags --always --dirty 2>/dev/null || echo '(devel)')}

CGO_ENABLED=1 go build -trimpath -buildmode=c-shared \
	-ldflags "-s -w -X github.com/primus-fl/primus/internal/buildinfo.version=$version -extldflags '-Wl,-soname,libprimus.so -Wl,--version-script=$PWD/capi/libprimus.map'" \
	-o "$out/lib/libprimus.so" ./capi
rm -f "$out/lib/libprimus.h" # of what the two halves of the library call in each other
cp capi/primus.h vendors/abi/primus_op_args.h vendors/abi/primus_op_plugin.h "$out/include/"
