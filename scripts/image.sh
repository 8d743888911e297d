#!/usr/bin/env bash
# Writes an image in OCI layout that has nothing but a static program, which runs in /run without
# root. The same program and time give the same bytes.
#
#   usage: scripts/image.sh PROGRAM ARCH VERSION SECONDS FILE      SECONDS are those of the commit
set -euo pipefail
umask 022
[[ $# == 5 ]] || { echo "image: given $# arguments, want PROGRAM ARCH VERSION SECONDS FILE" >&2; exit 2; }
program=$1 arch=$2 version=$3 seconds=$4 file=$5

user=65532 # a number that no user of the machine has
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
archive() { tar --sort=name --mtime="@$seconds" --numeric-owner "$@"; }

# blob FILE TYPE adds a file to the layout and prints its descriptor.
blob() {
	local sum
	sum=$(sha256sum "$1" | cut -d ' ' -f 1)
	cp "$1" "$work/oci/blobs/sha256/$sum"
	printf '"mediaType":"application/vnd.oci.image.%s","digest":"sha256:%s","size":%d' "$2" "$sum" "$(stat -c %s "$1")"
}

mkdir -p "$work/oci/blobs/sha256" "$work/root/run" "$work/root/tmp"
cp "$program" "$work/root/primus"
chmod 755 "$work/root/primus" "$work/root/run"
chmod 1777 "$work/root/tmp"
archive -C "$work/root" --owner=0 --group=0 -cf "$work/layer.tar" primus tmp
archive -C "$work/root" --owner=$user --group=$user -rf "$work/layer.tar" run
printf '{"created":"%s","architecture":"%s","os":"linux","config":{"User":"%s","Env":["HOME=/run","TMPDIR=/run"],"Entrypoint":["/primus"],"WorkingDir":"/run"},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
	"$(date -u -d "@$seconds" +%Y-%m-%dT%H:%M:%SZ)" "$arch" "$user:$user" "$(sha256sum "$work/layer.tar" | cut -d ' ' -f 1)" >"$work/config.json"
gzip -n -9 "$work/layer.tar"
layer=$(blob "$work/layer.tar.gz" layer.v1.tar+gzip)
config=$(blob "$work/config.json" config.v1+json)
printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{%s},"layers":[{%s}]}' "$config" "$layer" >"$work/manifest.json"
manifest=$(blob "$work/manifest.json" manifest.v1+json)
printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{%s,"platform":{"architecture":"%s","os":"linux"},"annotations":{"org.opencontainers.image.ref.name":"%s"}}]}' \
	"$manifest" "$arch" "$version" >"$work/oci/index.json"
printf '{"imageLayoutVersion":"1.0.0"}' >"$work/oci/oci-layout"
archive -C "$work/oci" --owner=0 --group=0 -cf "$file" oci-layout index.json blobs
