# Each target does one thing; `make check` is all that a change has to pass.

BIN     := bin/primus
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
# -s -w leave out the symbol table and DWARF: stack traces, profiles and `go version -m` stay,
# a debugger needs `go build ./cmd/primus`.
LDFLAGS := -s -w -X github.com/primus-fl/primus/internal/buildinfo.version=$(VERSION)
CONFIG  ?= examples/native/configs/llama_2M-pretrain.yaml

# The packages that make race tests.
RACE ?= $$(./scripts/concurrent.sh)

PKG       ?= ./...
PYTHON    ?= python3
BENCH     ?= .
BENCH_PKG ?= ./...
COUNT     ?= 6
FUZZTIME  ?= 10s

TOOL := go tool -modfile=internal/tools/go.mod

# Programs, tests and the programs that tests build share what the build cache has compiled if all of
# them are compiled with the same flags.
export GOFLAGS := $(filter-out -trimpath,$(GOFLAGS)) -trimpath

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/primus, which needs no C library
	CGO_ENABLED=0 go build -tags grpcnotrace -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/primus

.PHONY: lib
lib: ## build bin/lib/libprimus.so and bin/include, for programs in C and Python; needs a C compiler
	VERSION='$(VERSION)' ./scripts/lib.sh bin

.PHONY: wheel
wheel: lib ## build the wheel of the Python package primus_fl in dist, with the library inside
	python3 ./scripts/wheel.py bin/lib/libprimus.so '$(VERSION)' dist

.PHONY: python-env
python-env: ## make a virtual environment with what make check-python needs in bin/python-env, from PyPI (PACKAGES=torch)
	python3 -m venv bin/python-env
	bin/python-env/bin/pip install --quiet --upgrade pytest ruff mypy numpy $(PACKAGES)

.PHONY: check-python
check-python: lib ## run ruff, mypy and the tests of the Python package in bin/python-env (make python-env)
	cd python && ../bin/python-env/bin/ruff check . && ../bin/python-env/bin/mypy
	cd python && PRIMUS_LIBRARY=$(CURDIR)/bin/lib/libprimus.so ../bin/python-env/bin/pytest -q tests

# PyTorch comes with libraries for GPUs, which it needs to be imported on a CPU, too.
bin/python-env/with-torch:
	$(MAKE) python-env PACKAGES='torch transformers accelerate jax'
	touch $@

.PHONY: test-python
test-python: lib bin/python-env/with-torch ## run the tests of the Python package with PyPI's torch, transformers and JAX (several GB in bin/python-env)
	cd python && PRIMUS_LIBRARY=$(CURDIR)/bin/lib/libprimus.so ../bin/python-env/bin/pytest -q tests

.PHONY: bench-python
bench-python: lib ## time calls and training steps of primus_fl beside torch (PYTHON=/usr/bin/python3 ARGS="--rounds 5")
	PYTHONPATH=python PRIMUS_LIBRARY=bin/lib/libprimus.so $(PYTHON) python/bench/calls.py
	PYTHONPATH=python PRIMUS_LIBRARY=bin/lib/libprimus.so $(PYTHON) python/bench/llama.py $(ARGS)

.PHONY: bench-patched
bench-patched: lib bin/python-env/with-torch ## time training of a model of transformers in torch, compiled and patched (ARGS="--family gpt2")
	PYTHONPATH=python PRIMUS_LIBRARY=bin/lib/libprimus.so bin/python-env/bin/python python/bench/patched.py $(ARGS)

.PHONY: train
train: build ## train a small model from scratch (CONFIG=file.yaml ARGS='key=value …')
	./$(BIN) train pretrain --config $(CONFIG) load=none $(ARGS)

.PHONY: test
test: ## run all tests in random order
	CGO_ENABLED=0 go test -shuffle=on -timeout 30m ./...

.PHONY: test-short
test-short: ## run the tests that take no longer than a few seconds each (PKG='./opmanager/... ./ops/...' RUN=Residual)
	CGO_ENABLED=0 go test -short $(if $(RUN),-run '$(RUN)') $(PKG)

.PHONY: test-arm64
test-arm64: ## test the kernels of arm64 under QEMU, of which CI runs a part (ARGS=all)
	@./scripts/test-arm64.sh $(ARGS)

.PHONY: conformance
conformance: ## run every case of the conformance kit, of which make test runs a sample
	CGO_ENABLED=0 go test -timeout 30m -run '^TestConformance$$' ./impls/flagos -all

.PHONY: mutants
mutants: ## count the wrong kernels that the conformance kit refuses (ARGS='-seed 7 -only norm -v')
	@CGO_ENABLED=0 go run ./internal/mutants $(ARGS)

.PHONY: fuzz
fuzz: ## run every fuzz test for a while and print a table (FUZZTIME=10s ARGS='-only tokenizer -o json|md')
	@CGO_ENABLED=0 go run ./internal/fuzz -time $(FUZZTIME) $(ARGS)

.PHONY: race
race: ## run the tests of concurrent packages under the race detector, and check invariants
	CGO_ENABLED=1 go test -race -tags invariants -shuffle=on -timeout 40m $(RACE)
	CGO_ENABLED=0 go test -tags invariants -shuffle=on -timeout 30m ./internal/native/model

.PHONY: bench
bench: ## run benchmarks (BENCH=regexp BENCH_PKG=packages COUNT=runs)
	CGO_ENABLED=0 go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(BENCH_PKG)

.PHONY: bench-dispatch
bench-dispatch: ## print what a call costs beside a direct one
	CGO_ENABLED=0 go run ./internal/benchmarks dispatch

.PHONY: bench-kernels
bench-kernels: ## measure the kernels beside OpenBLAS, a bandwidth loop and PyTorch (ARGS='-only gemm -o json')
	@CGO_ENABLED=0 go run ./internal/benchmarks kernels $(ARGS)

.PHONY: bench-opencl
bench-opencl: ## measure the kernels of an OpenCL device beside CLBlast and flagos (ARGS='-only llama_2M -device 1 -o json')
	@CGO_ENABLED=0 go run ./internal/benchmarks opencl $(ARGS)

.PHONY: bench-train
bench-train: build ## time training steps beside PyTorch (ARGS='-models llama_6M -rounds 5 -o json')
	CGO_ENABLED=0 go run ./internal/benchmarks train $(ARGS)

.PHONY: bench-tune
bench-tune: build ## time training steps of four models under flagos, vendors and a tuning, beside PyTorch (ARGS='-rounds 3')
	CGO_ENABLED=0 go run ./internal/benchmarks train -models llama_6M,llama_30M,gpt2_10M,moe_8x3M $(ARGS)

.PHONY: bench-scale
bench-scale: build ## measure several ranks beside C, gloo and PyTorch DDP (ARGS='-only all_reduce -library mpich -md')
	CGO_ENABLED=0 go run ./internal/benchmarks scale $(ARGS)

.PHONY: bench-expect
bench-expect: build ## compare the time that dry runs expect with that of the runs (ARGS='-only llama_2M -o json')
	CGO_ENABLED=0 go run ./internal/benchmarks expect $(ARGS)

.PHONY: bench-save
bench-save: build ## compare how long saves stop training with a copy of what is saved (ARGS='-only llama_6M -o json')
	CGO_ENABLED=0 go run ./internal/benchmarks save $(ARGS)

.PHONY: bench-tokenize
bench-tokenize: ## train a tokenizer and encode beside @huggingface/tokenizers (ARGS='-input FILE -vocab-size 8192')
	@CGO_ENABLED=0 go run ./internal/benchmarks tokenize $(ARGS)

.PHONY: bench-generate
bench-generate: build ## time generation beside PyTorch (ARGS='-model llama_6M -llama-cpp FOLDER')
	CGO_ENABLED=0 go run ./internal/benchmarks generate $(ARGS)

.PHONY: bench-metrics
bench-metrics: ## print what counting, timing and verifying calls costs, of a call and of steps of llama_6M and llama_2M
	CGO_ENABLED=0 go test -run '^$$' -bench WatchedCalls -benchtime 3000x ./metrics
	CGO_ENABLED=0 go test -run '^$$' -bench WatchedSteps -benchtime 25x ./metrics
	CGO_ENABLED=0 go test -run '^$$' -bench VerifiedSteps -benchtime 40x ./metrics

.PHONY: bench-serve
bench-serve: build ## train while 1,000 clients watch (ARGS='-every 5s -rounds 3 -pin=false')
	CGO_ENABLED=0 go run ./internal/benchmarks serve $(ARGS)

# llama.cpp comes with its bindings for Python. Its server has no page here, which would be downloaded.
.PHONY: llama-server
llama-server: ## build llama.cpp's server in bin/llama.cpp, from PyPI's llama-cpp-python; needs CMake and a C++ compiler
	rm -rf bin/llama.cpp && mkdir -p bin/llama.cpp
	$(PYTHON) -m pip download --quiet --no-deps --no-binary :all: -d bin/llama.cpp llama-cpp-python
	tar -xzf bin/llama.cpp/*.tar.gz -C bin/llama.cpp --strip-components=1
	cmake -S bin/llama.cpp/vendor/llama.cpp -B bin/llama.cpp/build -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
		-DLLAMA_STANDALONE=ON -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_OPENSSL=OFF
	cmake --build bin/llama.cpp/build --target llama-server

.PHONY: bench-serve-model
bench-serve-model: build ## compare a model that clients use with llama.cpp's server (ARGS='-model llama_6M -clients 1,8 -llama-server FILE')
	CGO_ENABLED=0 go run ./internal/benchmarks serve-model $(ARGS)

.PHONY: soak
soak: build ## train 10,000 steps of a tiny model and watch that the process does not grow (ARGS='-steps 40000')
	CGO_ENABLED=0 go run ./internal/benchmarks soak $(ARGS)

.PHONY: chaos
chaos: ## attack training runs and check what docs/explanation/reliability.md promises (ARGS='-only kill,disk -seed 5 -o md')
	@CGO_ENABLED=0 go run ./internal/chaos $(ARGS)

.PHONY: chaos-plugins
chaos-plugins: ## train with plugins that misbehave and check what docs/reference/plugins.md promises (ARGS='-every 5 -o md')
	@CGO_ENABLED=0 go run ./internal/chaos plugins $(ARGS)

# What the site and the pictures are made with; nothing else needs it.
.PHONY: site-env
site-env: bin/site-env/ready
bin/site-env/ready: scripts/site/requirements.txt
	python3 -m venv bin/site-env
	bin/site-env/bin/pip install --quiet -r scripts/site/requirements.txt
	npm install --silent --no-save --prefix bin/site-env iframe-worker@1.0.4 axe-core@4.14.1 puppeteer-core@25.16.0
	touch $@

.PHONY: site
site: site-env ## make the documentation a site that opens from the file system, in bin/site; needs PyPI and npm the first time
	NO_MKDOCS_2_WARNING=1 bin/site-env/bin/mkdocs build --quiet --strict --config-file scripts/site/mkdocs.yml --site-dir $(CURDIR)/bin/site

.PHONY: check-site
check-site: site ## look at the pages of the site in chromium: links, width, search, requests, WCAG AA by axe-core (PICTURES=folder)
	node scripts/site/check.mjs bin/site $(PICTURES)

.PHONY: pictures
pictures: build site-env ## make the pictures of README.md in docs/images from a run; needs chromium (STEPS=600)
	./scripts/pictures.sh docs/images

DEVICE ?= opencl:0
.PHONY: coverage
coverage: build ## rewrite the table of ops against implementations in docs/reference/coverage.md; DEVICE= leaves out devices
	{ sed '/^<!-- generated: make coverage/q' docs/reference/coverage.md && echo && ./$(BIN) ops coverage $(if $(DEVICE),--device $(DEVICE)) && printf '\n<!-- end -->\n'; } > docs/coverage.tmp && mv docs/coverage.tmp docs/reference/coverage.md

.PHONY: fmt
fmt: ## format all Go files
	gofmt -w -s .

.PHONY: fmt-check
fmt-check: ## fail when a Go file is not formatted
	@unformatted=$$(gofmt -l -s .); test -z "$$unformatted" || { echo "not formatted, run make fmt:"; echo "$$unformatted"; exit 1; }

# The systems beside the usual one, which a test never runs on, or only in part.
OTHER_SYSTEMS := linux/arm64 darwin/arm64 darwin/amd64 windows/amd64

.PHONY: vet
vet: ## run go vet, also with invariants, and type-check for other systems
	CGO_ENABLED=0 go vet ./...
	CGO_ENABLED=0 go vet -tags invariants ./opmanager ./opregistry ./internal/native/memory
	CGO_ENABLED=0 go run ./internal/typecheck $(OTHER_SYSTEMS)
	CGO_ENABLED=0 GOARCH=arm64 go vet $$(GOARCH=arm64 go list -f '{{if .SFiles}}{{.ImportPath}}{{end}}' ./...)

.PHONY: lint
lint: ## run staticcheck
	CGO_ENABLED=0 $(TOOL) staticcheck ./...

.PHONY: vuln
vuln: ## look up packages that the module uses in the database of vulnerabilities of Go (ARGS='-scan symbol')
	CGO_ENABLED=0 $(TOOL) govulncheck -scan package $(ARGS) ./...

.PHONY: tidy-check
tidy-check: ## fail when go.mod or go.sum would change
	go mod tidy -diff
	cd internal/tools && go mod tidy -diff
	cd examples/outtree_go && go mod tidy -diff

.PHONY: generate-check
generate-check: ## fail when go generate changes a file
	CGO_ENABLED=0 ./scripts/check-generate.sh

.PHONY: api
api: ## rewrite internal/api/exported.txt, the names that public packages export
	CGO_ENABLED=0 go run ./internal/api

.PHONY: api-check
api-check: ## print how exported names differ from internal/api/exported.txt, and fail if they do
	@CGO_ENABLED=0 go run ./internal/api -check

.PHONY: check
check: fmt-check vet lint tidy-check generate-check api-check test race ## everything that a change has to pass

.PHONY: measure-tree
measure-tree: ## print packages, exported names, lines, words of the documentation and the size of bin/primus (COMMIT= compares with a commit)
	@./scripts/measure-tree.sh $(COMMIT)

.PHONY: man
man: build ## write the manual pages to bin/man1
	./$(BIN) man --dir bin/man1

.PHONY: release
release: ## build the archives, packages, images, checksums and bills of materials of the tag in dist (VERSION=v0.1.0-rc.1 TARGETS=linux/amd64)
	VERSION='$(if $(filter command line environment,$(origin VERSION)),$(VERSION))' TARGETS='$(TARGETS)' ./scripts/release.sh dist

.PHONY: test-release
test-release: ## check the files in dist, and install the deb in a bare Debian
	./scripts/test-release.sh dist

.PHONY: clean
clean: ## remove what build, train and release made
	rm -rf bin output dist
