#!/usr/bin/env bash
# Builds what a release consists of into a folder: for each system an archive with manual pages,
# completions, documentation and examples, and a bill of materials; for Linux also a deb, an rpm
# and an image in OCI layout; and the checksums of all. The same commit and Go give the same bytes.
# scripts/test-release.sh installs them.
# The version is the tag of the commit, as in v0.1.0; VERSION=… builds without one.
#
#   usage: scripts/release.sh [DIR]      TARGETS="linux/amd64 …" builds some only
#
# The linux_*_static archives need no C library and cannot load any: no plugins, no
# OpenBLAS, no oneDNN. The others load them and need glibc on Linux.
set -euo pipefail
cd "$(dirname "$0")/.."

dir=${1:-dist}
targets=${TARGETS:-linux/amd64 linux/amd64/static linux/arm64 linux/arm64/static darwin/arm64 darwin/amd64 windows/amd64}

version=${VERSION:-$(git describe --tags --exact-match --match 'v*' 2>/dev/null || true)}
if [[ ! $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]]; then
	echo "release: got version '$version', want a tag such as v0.1.0 on this commit: tag it, or give VERSION=v0.1.0-rc.1" >&2
	exit 1
fi
if [[ -z ${VERSION:-} && -n $(git status --porcelain) ]]; then
	echo "release: the tree has changes that are not committed; commit or remove them, or give VERSION" >&2
	exit 1
fi
if ! grep -q "^## \[${version#v}\]" CHANGELOG.md; then
	echo "release: CHANGELOG.md has no section [${version#v}]; rename Unreleased" >&2
	exit 1
fi

commit_time=$(git log -1 --format=%ct)
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

flags=(-trimpath -buildvcs=false -ldflags "-s -w -buildid= -X github.com/primus-fl/primus/internal/buildinfo.version=$version")
go build -o "$work/sbom" ./internal/sbom
CGO_ENABLED=0 GOFLAGS= go build "${flags[@]}" -tags grpcnotrace -o "$work/here" ./cmd/primus
if [[ $("$work/here" --version) != *"$version"* ]]; then
	echo "release: the program says '$("$work/here" --version)', want $version: does the linker still set internal/buildinfo.version?" >&2
	exit 1
fi
SOURCE_DATE_EPOCH=$commit_time "$work/here" man --dir "$work/share/man/man1"
mkdir "$work/share/completions"
for shell in bash zsh fish; do
	"$work/here" completion $shell >"$work/share/completions/primus.$shell"
done
# Files of the tree as they are, without what is not tracked.
git ls-files -z docs examples/native examples/dummy examples/monitoring |
	tar --no-recursion --null --files-from=- -cf - | tar -C "$work/share" -xf -
packer=${NFPM:-}
if [[ -z $packer ]]; then
	packer=$work/nfpm
	go build -modfile=internal/tools/go.mod -o "$packer" github.com/goreleaser/nfpm/v2/cmd/nfpm
fi

archives=()
for target in $targets; do
	IFS=/ read -r os arch kind <<<"$target"
	name=primus_${version#v}_${os}_${arch}${kind:+_$kind}
	tags=(-tags grpcnotrace)
	[[ $kind == static ]] && tags=(-tags grpcnotrace,nopurego)
	echo "release: $name"
	mkdir -p "$work/$name"
	program=primus
	[[ $os == windows ]] && program=primus.exe
	CGO_ENABLED=0 GOOS=$os GOARCH=$arch GOFLAGS= go build "${flags[@]}" "${tags[@]}" -o "$work/$name/$program" ./cmd/primus
	cp -r LICENSE README.md CHANGELOG.md SECURITY.md "$work/share" "$work/$name/"
	"$work/sbom" "$work/$name/$program" "$version" >"$dir/$name.cdx.json"
	tar -C "$work" --sort=name --mtime="@$commit_time" --owner=0 --group=0 --numeric-owner -cf - "$name" |
		gzip -n -9 >"$dir/$name.tar.gz"
	archives+=("$name.tar.gz" "$name.cdx.json")
	if [[ $os == linux && $kind == static ]]; then
		scripts/image.sh "$work/$name/$program" "$arch" "$version" "$commit_time" "$dir/primus_${version#v}_linux_${arch}_oci.tar"
		archives+=("primus_${version#v}_linux_${arch}_oci.tar")
	elif [[ $os == linux ]]; then
		for format in deb rpm; do
			package=primus_${version#v}_linux_$arch.$format
			SOURCE_DATE_EPOCH=$commit_time PRIMUS_VERSION=$version PRIMUS_ARCH=$arch PRIMUS_TREE=$work/$name \
				"$packer" package --config scripts/nfpm.yaml --packager $format --target "$dir/$package"
			archives+=("$package")
		done
	fi
done
(cd "$dir" && sha256sum "${archives[@]}" >SHA256SUMS)
echo "release: $version is in $dir"
