package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// decoders lists the functions that read bytes which may come from outside. What is listed for
// encoding/binary with a dot is a method of a byte order.
var decoders = map[string][]string{
	"archive/tar":                        {"NewReader"},
	"archive/zip":                        {"NewReader", "OpenReader"},
	"bufio":                              {"NewReader", "NewReaderSize", "NewScanner"},
	"compress/gzip":                      {"NewReader"},
	"compress/zlib":                      {"NewReader"},
	"encoding/csv":                       {"NewReader"},
	"encoding/json":                      {"NewDecoder", "Unmarshal"},
	"encoding/xml":                       {"NewDecoder", "Unmarshal"},
	"go/parser":                          {"ParseFile"},
	module + "/document":                 {"ReadFile"},
	module + "/internal/durable":         {"OpenRegular", "ReadRegular"},
	"github.com/klauspost/compress/zstd": {"NewReader"},
	"github.com/pelletier/go-toml/v2":    {"NewDecoder", "Unmarshal"},
	"go.yaml.in/yaml/v3":                 {"NewDecoder", "Unmarshal"},
	"encoding/binary": {
		"Read", "ReadUvarint", "ReadVarint", "Uvarint", "Varint", ".Uint16", ".Uint32", ".Uint64",
	},
}

// trusted lists packages whose decoders read nothing from outside, with what they read.
var trusted = map[string]string{
	"cmd/primus/command/internal/config":    "files that it has written, as a whole",
	"cmd/primus/command/internal/fleet":     "policies that opmanager/policyfile reads",
	"cmd/primus/command/internal/plugins":   "reports that internal/plugin/check reads",
	"cmd/primus/command/internal/tokenizer": "text, as it is",
	"internal/backends/torchtitan":          "sources that internal/pyreader reads",
	"internal/secret":                       "secrets, as they are, and certificates",
	"cmd/primus/command/internal/train":     "answers that somebody types at a terminal",
	"impls/flagos":                          "operands of ops",
	"impls/flagos/internal/moe":             "operands of ops",
	"internal/kernel/fp8":                   "operands of ops",
	"internal/megatronargs":                 "a table that is part of the program",
	"internal/plugin/scaffold":              "what the go command says of modules that are compiled next",
}

// decodes returns where a file calls one of some decoders, "" if it calls none.
func (s source) decodes(decoders map[string][]string) string {
	names := map[string]string{} // of the packages in the file
	for _, i := range s.imports() {
		if decoders[i.path] == nil {
			continue
		}
		name := i.alias
		if name == "" {
			name = path.Base(strings.TrimSuffix(strings.TrimSuffix(i.path, "/v2"), "/v3"))
			name = strings.TrimPrefix(name, "go-")
		}
		names[name] = i.path
	}
	found := ""
	ast.Inspect(s.file, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok || found != "" {
			return found == ""
		}
		name := selector.Sel.Name
		x := selector.X
		if order, ok := x.(*ast.SelectorExpr); ok {
			x, name = order.X, "."+name
		}
		if id, ok := x.(*ast.Ident); ok && slices.Contains(decoders[names[id.Name]], name) {
			found = fmt.Sprintf("%s:%d: %s.%s", s.where(), s.fset.Position(n.Pos()).Line, id.Name, strings.TrimPrefix(name, "."))
		}
		return true
	})
	return found
}

// shipped returns the packages that the programs and the library for C are made of.
func shipped(files []source) map[string]bool {
	imports := map[string][]string{}
	for _, s := range files {
		if !s.isTest() && !s.isKit() {
			imports[s.dir] = append(imports[s.dir], s.targets()...)
		}
	}
	found := map[string]bool{}
	var add func(dir string)
	add = func(dir string) {
		if !found[dir] {
			found[dir] = true
			for _, target := range imports[dir] {
				add(target)
			}
		}
	}
	for dir := range imports {
		if inside(dir, "cmd/primus") && strings.Count(dir, "/") == 1 || inside(dir, "capi") {
			add(dir)
		}
	}
	return found
}

// checkFuzzed returns the shipped packages that decode and have no fuzz test in their folder, in
// order. A fuzz test in the folder above counts if its file imports the package.
func checkFuzzed(files []source, trusted map[string]string) []string {
	decodes, fuzzed := map[string]string{}, map[string]bool{}
	ships := shipped(files)
	for _, s := range files {
		switch {
		case s.isTest() && s.hasFuzz():
			fuzzed[s.dir] = true
			for _, target := range s.targets() {
				fuzzed[target] = fuzzed[target] || path.Dir(target) == s.dir
			}
		case !s.isTest() && !s.isKit() && ships[s.dir] && decodes[s.dir] == "":
			decodes[s.dir] = s.decodes(decoders)
		}
	}
	var faults []string
	for _, dir := range slices.Sorted(maps.Keys(decodes)) {
		_, exempt := trusted[dir]
		switch call := decodes[dir]; {
		case call != "" && !fuzzed[dir] && !exempt:
			faults = append(faults, call+": want a fuzz test in "+dir+", or the package in the list of those that read nothing from outside")
		case exempt && (call == "" || fuzzed[dir]):
			faults = append(faults, dir+" is listed as one that needs no fuzz test; it decodes nothing, or has one: remove it")
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(trusted)) {
		if !ships[dir] {
			faults = append(faults, dir+" is listed as one that needs no fuzz test and is in no program: remove it")
		}
	}
	return faults
}

// hasFuzz reports whether a file declares a fuzz test.
func (s source) hasFuzz() bool {
	return slices.ContainsFunc(s.file.Decls, func(d ast.Decl) bool {
		f, ok := d.(*ast.FuncDecl)
		return ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Fuzz")
	})
}

// Every package of a program that decodes bytes from outside has a fuzz test.
func TestDecodersAreFuzzed(t *testing.T) {
	t.Parallel()
	for _, fault := range checkFuzzed(tree(t), trusted) {
		t.Error(fault)
	}
}

// checkMeasured returns the files with fuzz tests that do not measure what they cost, in order.
func checkMeasured(files []source) []string {
	measures := map[string][]string{module + "/internal/primustest": {"Cost", "Measured"}}
	var faults []string
	for _, s := range files {
		if s.isTest() && s.hasFuzz() && s.decodes(measures) == "" && !inside(s.dir, "internal/fuzz") {
			faults = append(faults, s.where()+": want its fuzz tests to call primustest.Cost or primustest.Measured")
		}
	}
	slices.Sort(faults)
	return faults
}

// Every fuzz test bounds memory and time by the length of its input.
func TestFuzzTestsMeasure(t *testing.T) {
	t.Parallel()
	for _, fault := range checkMeasured(tree(t)) {
		t.Error(fault)
	}
	fuzz := parse(t, "internal/a/a_test.go", "package a\nimport \"testing\"\nfunc FuzzA(f *testing.F) {}")
	measured := parse(t, "internal/b/b_test.go", "package b\nimport \""+module+"/internal/primustest\"\nfunc FuzzA(f *testing.F) { primustest.Measured(nil, 1) }")
	assert.Equal(t, []string{"internal/a/a_test.go: want its fuzz tests to call primustest.Cost or primustest.Measured"}, checkMeasured([]source{measured, fuzz}))
}

func TestDecodersWithoutFuzzTestsAreFound(t *testing.T) {
	t.Parallel()
	program := parse(t, "cmd/primus/main.go", "package main\nimport _ \""+module+"/internal/a\"")
	decoder := parse(t, "internal/a/a.go", "package a\nimport \"encoding/json\"\nvar _ = json.Unmarshal")
	number := parse(t, "internal/a/a.go", "package a\nimport \"encoding/binary\"\nvar _ = binary.LittleEndian.Uint32(nil)")
	writer := parse(t, "internal/a/a.go", "package a\nimport (\n\"encoding/json\"\n\"encoding/binary\"\n)\nvar _, _ = json.Marshal, binary.LittleEndian.PutUint32")
	fuzz := parse(t, "internal/a/a_test.go", "package a_test\nimport \"testing\"\nfunc FuzzA(f *testing.F) {}")
	above := parse(t, "internal/a_test.go", "package a_test\nimport (\n\"testing\"\n\""+module+"/internal/a\"\n)\nfunc FuzzA(f *testing.F) {}")
	listed := map[string]string{"internal/a": "nothing"}
	const want = "want a fuzz test in internal/a, or the package in the list of those that read nothing from outside"
	assert.Equal(t, []string{"internal/a/a.go:3: json.Unmarshal: " + want}, checkFuzzed([]source{program, decoder}, nil))
	assert.Equal(t, []string{"internal/a/a.go:3: binary.Uint32: " + want}, checkFuzzed([]source{program, number}, nil))
	for _, files := range [][]source{{program, decoder, fuzz}, {program, decoder, above}, {program, writer}, {decoder}} {
		assert.Empty(t, checkFuzzed(files, nil))
	}
	assert.Empty(t, checkFuzzed([]source{program, decoder}, listed))
	const remove = "internal/a is listed as one that needs no fuzz test"
	assert.Equal(t, []string{remove + "; it decodes nothing, or has one: remove it"}, checkFuzzed([]source{program, writer}, listed))
	assert.Equal(t, []string{remove + " and is in no program: remove it"}, checkFuzzed([]source{decoder}, listed))
}
