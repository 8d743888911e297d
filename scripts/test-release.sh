#!/usr/bin/env bash
# Checks a release that scripts/release.sh has built: the checksums of its files, what is in them,
# and, in a bare Debian, that the deb installs, trains on a text, talks and goes away again.
# Where a part cannot be tested here, a line says why.
#
#   usage: scripts/test-release.sh [DIR]      SUITE=bookworm MIRROR=http://deb.debian.org/debian
set -euo pipefail

dir=$(cd "${1:-dist}" && pwd)
arch=$(dpkg --print-architecture)
work=$(mktemp -d)
cleanup() {
	mountpoint -q "$work/root/proc" && umount "$work/root/proc"
	rm -rf "$work"
}
trap cleanup EXIT

fail() {
	echo "test-release: $*" >&2
	exit 1
}

(cd "$dir" && sha256sum --quiet -c SHA256SUMS) || fail "the files in $dir are not those of SHA256SUMS"
echo "checksums: $(wc -l <"$dir/SHA256SUMS") files are right"

archive=$(ls "$dir"/primus_*_linux_"$arch".tar.gz)
tar -C "$work" -xf "$archive"
tree=$(echo "$work"/primus_*)
for wanted in primus README.md LICENSE CHANGELOG.md share/man/man1/primus.1 share/completions/primus.bash share/docs share/examples/native; do
	[[ -e $tree/$wanted ]] || fail "$archive has no $wanted"
done
echo "archive: $(find "$tree" -type f | wc -l) files, $("$tree/primus" --version)"

# talk PROGRAM trains on a text for a moment and asks the model something, in an empty folder.
talk='set -e
cd "$(mktemp -d)"
for i in $(seq 3000); do echo "Line $i says that the kernel adds $((i * 7 % 101)) rows."; done >text.txt
primus train text.txt --time 5s >out 2>&1 || { cat out; exit 1; }
tail -n 1 out
echo "The kernel" | primus chat text --max-tokens 8
primus examples list >/dev/null'
(PATH=$tree:$PATH bash -c "$talk") || fail "the program of $archive does not train and talk"
echo "archive: it trains and talks"

for image in "$dir"/*_oci.tar; do
	[[ -e $image ]] || continue
	mkdir "$work/image" && tar -C "$work/image" -xf "$image"
	(cd "$work/image/blobs/sha256" && for f in *; do echo "$f  $f"; done | sha256sum --quiet -c) || fail "$image: a blob is not what its name says"
	echo "image: the blobs of $(basename "$image") are right"
	if [[ $image == *_linux_${arch}_oci.tar && $(id -u) == 0 ]]; then
		# As in a container without root, capabilities and a root file system that can be written.
		mkdir "$work/inside"
		for blob in "$work"/image/blobs/sha256/*; do
			gzip -t "$blob" 2>/dev/null && tar -C "$work/inside" -xf "$blob"
		done
		for i in $(seq 3000); do echo "Line $i says that the kernel adds $((i * 7 % 101)) rows."; done >"$work/inside/run/text.txt"
		env -i HOME=/run "$(command -v unshare)" --root="$work/inside" --wd=/run --setuid=65532 --setgid=65532 /primus train text.txt --time 5s >"$work/log" 2>&1 ||
			fail "$image: the program does not train without root: $(tail -n 5 "$work/log")"
		[[ -z $(find "$work/inside" -newer "$work/inside/run/text.txt" -not -path "$work/inside/run*" -not -path "$work/inside/tmp*") ]] ||
			fail "$image: the program has written outside of /run and /tmp"
		rm -rf "$work/inside"
		echo "image: it trains without root"
	fi
	rm -rf "$work/image"
done

if ! command -v debootstrap >/dev/null; then
	echo "deb: skipped, debootstrap is not installed (apt-get install debootstrap)"
	exit 0
fi
if [[ $(id -u) != 0 ]]; then
	echo "deb: skipped, chroot needs root"
	exit 0
fi
if ! debootstrap --variant=minbase "${SUITE:-bookworm}" "$work/root" "${MIRROR:-http://deb.debian.org/debian}" >"$work/log" 2>&1; then
	echo "deb: skipped, debootstrap fails: $(tail -n 1 "$work/log")"
	exit 0
fi
mount -t proc proc "$work/root/proc" 2>/dev/null || echo "deb: without /proc, which cannot be mounted here"
cp "$dir"/primus_*_linux_"$arch".deb "$work/root/primus.deb"
inside() { chroot "$work/root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"; }
inside dpkg -i /primus.deb >/dev/null || fail "the deb does not install"
inside bash -c "$talk" || fail "the installed program does not train and talk"
for wanted in /usr/share/man/man1/primus.1 /usr/share/bash-completion/completions/primus /usr/share/doc/primus/copyright; do
	# minbase leaves out most of /usr/share/doc and man pages only if it is told so.
	[[ -e $work/root$wanted ]] || fail "the deb has not brought $wanted"
done
inside dpkg -i /primus.deb >/dev/null || fail "the deb does not install over itself"
inside dpkg --purge primus >/dev/null || fail "the deb does not go away"
[[ ! -e $work/root/usr/bin/primus ]] || fail "the purged package leaves /usr/bin/primus"
echo "deb: installed, trained, talked and purged in ${SUITE:-bookworm}"
