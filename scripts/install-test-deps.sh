#!/usr/bin/env bash
# Installs the Debian packages that tests use when they find them: compilers of C and C++ for
# plugin fixtures and libprimus, the libraries behind vendors/openblas and vendors/onednn, etcd for
# fleets, Prometheus for dashboards and rules, a browser for the page of the service,
# PyTorch for tests that compare ops and training with it and that start Python frameworks,
# Jinja for those of chat templates, SentencePiece for those of tokenizers,
# Slurm and podman for launchers, bash-completion and man-db for those that complete at a
# prompt and read manual pages, Open MPI and MPICH for those of jobs of several ranks, PoCL, Oclgrind
# and CLBlast for those of OpenCL devices, and node
# with @huggingface/tokenizers, @huggingface/gguf, openai and llama.cpp as node-llama-cpp (in the
# user's cache folder) for those of tokenizers, of GGUF files and of the service of a model.
# Those tests skip without them, so this script never fails: it says what it could not do.
# With the argument bench it also installs what makes PyTorch fast, for make bench-train.
set -uo pipefail

packages=(gcc g++ libc6-dev libopenblas0-pthread libdnnl2 etcd-server etcd-client prometheus chromium python3-torch python3-numpy
	python3-yaml python3-jinja2 sentencepiece bash-completion man-db openmpi-bin mpich slurm-wlm libpmix-dev munge podman runc
	pocl-opencl-icd oclgrind libclblast1 opencl-c-headers)
command -v npm >/dev/null || packages+=(nodejs npm)
case ${1:-} in
'') ;;
bench) packages+=(libopenblas0-openmp libtcmalloc-minimal4) ;;
*)
	echo "usage: $0 [bench]" >&2
	exit 2
	;;
esac

say() { echo "install-test-deps: $*"; }

# Installs the packages of node that tests use, where os.UserCacheDir of Go finds them.
install_node_packages() {
	local dir=${XDG_CACHE_HOME:-$HOME/.cache}/primus-fl/npm package name
	local all=(@huggingface/tokenizers@0.2.0 @huggingface/gguf@0.4.6 openai@6.49.0)
	if [[ $(uname -sm) == "Linux x86_64" ]]; then
		all+=(node-llama-cpp@3.22.1 @node-llama-cpp/linux-x64@3.22.1)
	fi
	for package in "${all[@]}"; do
		name=${package%@*}
		if grep -qs "\"version\": \"${package##*@}\"" "$dir/node_modules/$name/package.json"; then
			continue
		fi
		if command -v npm >/dev/null && mkdir -p "$dir" &&
			timeout 120 npm install --prefix "$dir" --fetch-retries=1 --silent --no-audit --no-fund --ignore-scripts --omit=optional "$package" >/dev/null 2>&1; then
			say "installed $name"
		else
			say "cannot install $name; tests that need it will skip"
		fi
	done
}
trap install_node_packages EXIT

missing=()
for package in "${packages[@]}"; do
	if ! dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed'; then
		missing+=("$package")
	fi
done

if [[ ${#missing[@]} -eq 0 ]]; then
	say "everything is installed"
	exit 0
fi
if ! command -v apt-get >/dev/null; then
	say "no apt-get here; tests that need ${missing[*]} will skip"
	exit 0
fi
if [[ $(id -u) -ne 0 ]]; then
	say "not root; tests that need ${missing[*]} will skip"
	exit 0
fi

export DEBIAN_FRONTEND=noninteractive
apt=(timeout 600 apt-get -qq -o Acquire::Retries=1 -o Acquire::http::Timeout=15 -o Acquire::https::Timeout=15)
if ! "${apt[@]}" update; then
	say "the package index cannot be read; tests that need ${missing[*]} will skip"
	exit 0
fi
# One by one, so that a package which this release does not have costs no other.
for package in "${missing[@]}"; do
	if "${apt[@]}" install -y --no-install-recommends "$package" >/dev/null; then
		say "installed $package"
	else
		say "cannot install $package; tests that need it will skip"
	fi
done
exit 0
