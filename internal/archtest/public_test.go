package archtest

import (
	"go/ast"
	"go/doc"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// publicPackages returns the list of the packages that others may import.
func publicPackages(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("public.txt")
	require.NoError(t, err)
	var all []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, line)
		}
	}
	return all
}

// importable returns the sorted folders with a package that other modules can import.
func importable(files []source) []string {
	var dirs []string
	for _, s := range files {
		internal := slices.Contains(strings.Split(s.dir, "/"), "internal")
		if !internal && !s.isTest() && s.file.Name.Name != "main" {
			dirs = append(dirs, s.dir)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// checkPublic returns how the packages that can be imported differ from those that are listed.
func checkPublic(listed []string, files []source) []string {
	found := importable(files)
	var faults []string
	for _, dir := range found {
		if !slices.Contains(listed, dir) {
			faults = append(faults, dir+": can be imported, but is not in public.txt: move it below an internal folder, or list it and say in docs/explanation/rationale.md why it is public")
		}
	}
	for i, dir := range listed {
		if !slices.Contains(found, dir) {
			faults = append(faults, dir+": is in public.txt, but cannot be imported: remove the line")
		}
		if i > 0 && listed[i-1] >= dir {
			faults = append(faults, dir+": comes after "+listed[i-1]+" in public.txt: sort the lines, each once")
		}
	}
	return faults
}

// sentence matches the end of a sentence.
var sentence = regexp.MustCompile(`[.!?][)"']*(\s|$)`)

// unrun lists the packages whose Example is compiled only, because it needs a *testing.T.
var unrun = []string{"device/devicetest", "runtime/train/traintest"}

// checkExplained returns the public packages that a stranger is not told enough about.
func checkExplained(listed []string, files []source) []string {
	comments, examples := map[string]string{}, map[string][]*ast.File{}
	for _, s := range files {
		if s.isTest() && strings.HasSuffix(s.file.Name.Name, "_test") {
			examples[s.dir] = append(examples[s.dir], s.file)
		} else if !s.isTest() {
			comments[s.dir] += s.file.Doc.Text()
		}
	}
	var faults []string
	for _, dir := range listed {
		if len(sentence.FindAllString(comments[dir], 2)) < 2 {
			faults = append(faults, dir+": the package comment has less than two sentences: say what the package is for and what a caller must know")
		}
		if !slices.ContainsFunc(doc.Examples(examples[dir]...), func(e *doc.Example) bool { return e.Output != "" || slices.Contains(unrun, dir) }) {
			faults = append(faults, dir+": no Example with an Output comment in a test of package "+dir[strings.LastIndex(dir, "/")+1:]+"_test")
		}
	}
	return faults
}

func TestPublicPackages(t *testing.T) {
	t.Parallel()
	listed, files := publicPackages(t), tree(t)
	for _, dir := range unrun {
		assert.Contains(t, listed, dir, "remove it from the list")
	}
	for _, fault := range slices.Concat(checkPublic(listed, files), checkExplained(listed, files)) {
		t.Error(fault)
	}
}

func TestPublicPackagesFindsViolations(t *testing.T) {
	t.Parallel()
	files := []source{
		parse(t, "a/a.go", "// Package a adds. Sums are exact.\npackage a\n"),
		parse(t, "a/example_test.go", "package a_test\n\nimport \"fmt\"\n\nfunc Example() {\n\tfmt.Println(1)\n\t// Output: 1\n}\n"),
		parse(t, "b/b.go", "// Package b is short.\npackage b\n"),
		parse(t, "b/example_test.go", "package b_test\n\nfunc Example() { println() }\n"),
		parse(t, "b/internal/c/c.go", "package c\n"),
		parse(t, "d/main.go", "package main\n"),
		parse(t, "e/e_test.go", "package e\n"),
	}
	assert.Equal(t, []string{
		"b: can be imported, but is not in public.txt: move it below an internal folder, or list it and say in docs/explanation/rationale.md why it is public",
		"e: is in public.txt, but cannot be imported: remove the line",
		"a: comes after e in public.txt: sort the lines, each once",
	}, checkPublic([]string{"e", "a"}, files))
	assert.Empty(t, checkPublic([]string{"a", "b"}, files))
	assert.Empty(t, checkExplained([]string{"a"}, files))
	assert.Equal(t, []string{
		"b: the package comment has less than two sentences: say what the package is for and what a caller must know",
		"b: no Example with an Output comment in a test of package b_test",
	}, checkExplained([]string{"b"}, files))
}
