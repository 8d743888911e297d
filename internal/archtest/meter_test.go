package archtest

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// expanders lists decoders that make much of few bytes: what they unpack, build or run through is
// not bounded by the length of their input.
var expanders = map[string][]string{
	"archive/tar":                          {"NewReader"},
	"archive/zip":                          {"NewReader", "OpenReader"},
	"compress/bzip2":                       {"NewReader"},
	"compress/flate":                       {"NewReader"},
	"compress/gzip":                        {"NewReader"},
	"compress/zlib":                        {"NewReader"},
	"github.com/klauspost/compress/gzip":   {"NewReader"},
	"github.com/klauspost/compress/s2":     {"NewReader", "Decode"},
	"github.com/klauspost/compress/snappy": {"NewReader", "Decode"},
	"github.com/klauspost/compress/zstd":   {"NewReader"},
	"github.com/pelletier/go-toml/v2":      {"NewDecoder", "Unmarshal"},
	"go.yaml.in/yaml/v3":                   {"NewDecoder", "Unmarshal"},
}

// mustMeter lists packages that draw from a budget whatever they call.
var mustMeter = []string{"document", "internal/native/data/parquet", "internal/pyreader", "internal/safetensors", "internal/tokenizer/chat", "internal/torchfile"}

// bounded lists packages whose expanders are bounded in another way, with that way.
var bounded = map[string]string{
	"cmd/primus/command/internal/train/firstrun": "512 bytes are unpacked",
	"document/formats":                           "document.Tree draws each value from its budget",
}

const meterPackage = "internal/meter"

// checkMetered returns the shipped packages that expand bytes without a meter, in order.
func checkMetered(files []source, must []string, bounded map[string]string) []string {
	calls, metered, exists := map[string]string{}, map[string]bool{}, map[string]bool{}
	ships := shipped(files)
	for _, s := range files {
		if s.isTest() || s.isKit() || !ships[s.dir] {
			continue
		}
		exists[s.dir] = true
		metered[s.dir] = metered[s.dir] || slices.Contains(s.targets(), meterPackage)
		if calls[s.dir] == "" {
			calls[s.dir] = s.decodes(expanders)
		}
	}
	var faults []string
	for _, dir := range slices.Sorted(maps.Keys(exists)) {
		_, exempt := bounded[dir]
		switch {
		case exempt && (calls[dir] == "" || metered[dir]):
			faults = append(faults, dir+" is listed as bounded in another way; it expands nothing, or has a meter: remove it")
		case exempt || metered[dir]:
		case calls[dir] != "":
			faults = append(faults, fmt.Sprintf("%s: want it to draw from a meter, or the package in the list of those that are bounded in another way", calls[dir]))
		case slices.Contains(must, dir):
			faults = append(faults, dir+": want it to draw from a meter")
		}
	}
	for _, dir := range append(slices.Sorted(maps.Keys(bounded)), must...) {
		if !exists[dir] {
			faults = append(faults, dir+" is listed and is in no program: remove it")
		}
	}
	return faults
}

// Every package of a program that makes much of few bytes from outside has a budget for it.
func TestDecodersAreMetered(t *testing.T) {
	t.Parallel()
	for _, fault := range checkMetered(tree(t), mustMeter, bounded) {
		t.Error(fault)
	}
}

func TestDecodersWithoutMetersAreFound(t *testing.T) {
	t.Parallel()
	program := parse(t, "cmd/primus/main.go", "package main\nimport _ \""+module+"/internal/a\"")
	zip := parse(t, "internal/a/a.go", "package a\nimport \"archive/zip\"\nvar _ = zip.NewReader")
	yaml := parse(t, "internal/a/a.go", "package a\nimport \"go.yaml.in/yaml/v3\"\nvar _ = yaml.Unmarshal")
	writer := parse(t, "internal/a/a.go", "package a\nimport \"archive/zip\"\nvar _ = zip.NewWriter")
	metered := parse(t, "internal/a/b.go", "package a\nimport _ \""+module+"/internal/meter\"")
	const want = ": want it to draw from a meter, or the package in the list of those that are bounded in another way"
	listed := map[string]string{"internal/a": "by hand"}
	assert.Equal(t, []string{"internal/a/a.go:3: zip.NewReader" + want}, checkMetered([]source{program, zip}, nil, nil))
	assert.Equal(t, []string{"internal/a/a.go:3: yaml.Unmarshal" + want}, checkMetered([]source{program, yaml}, nil, nil))
	assert.Equal(t, []string{"internal/a: want it to draw from a meter"}, checkMetered([]source{program, writer}, []string{"internal/a"}, nil))
	for _, files := range [][]source{{program, zip, metered}, {program, writer}, {zip}} {
		assert.Empty(t, checkMetered(files, nil, nil))
	}
	assert.Empty(t, checkMetered([]source{program, zip}, nil, listed))
	const remove = "internal/a is listed as bounded in another way; it expands nothing, or has a meter: remove it"
	assert.Equal(t, []string{remove}, checkMetered([]source{program, writer}, nil, listed))
	assert.Equal(t, []string{remove}, checkMetered([]source{program, zip, metered}, nil, listed))
	assert.Equal(t, []string{"internal/a is listed and is in no program: remove it"}, checkMetered([]source{zip}, nil, listed))
}
