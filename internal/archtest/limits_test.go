package archtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The limits of a package, test files not counted.
const (
	maxFiles = 40
	maxLines = 6000
)

// reasons says why a package is larger.
var reasons = map[string]string{
	"ops/opscases": "the cases of every op lie side by side, and no case depends on another",
}

// checkLimits returns the packages that are too large.
func checkLimits(files []source) []string {
	type size struct{ files, lines int }
	sizes := map[string]size{}
	for _, s := range files {
		if !s.isTest() {
			old := sizes[s.dir]
			sizes[s.dir] = size{old.files + 1, old.lines + s.fset.File(s.file.FileStart).LineCount()}
		}
	}
	var found []string
	for _, dir := range slices.Sorted(maps.Keys(sizes)) {
		if is := sizes[dir]; (is.files > maxFiles || is.lines > maxLines) && reasons[dir] == "" {
			found = append(found, fmt.Sprintf("%s has %d files and %d lines, more than %d files or %d lines: split it", dir, is.files, is.lines, maxFiles, maxLines))
		}
	}
	return found
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for _, violation := range checkLimits(tree(t)) {
		t.Error(violation)
	}
}

func TestLimitsFindViolations(t *testing.T) {
	t.Parallel()
	var files []source
	add := func(dir string, count, lines int) {
		for i := range count {
			files = append(files, parse(t, fmt.Sprintf("%s/f%d.go", dir, i), "package p"+strings.Repeat("\n", lines)))
		}
	}
	add("within", maxFiles, 2)
	add("many", maxFiles+1, 2)
	add("long", 1, maxLines+1)
	files = append(files, parse(t, "within/a_test.go", "package p"+strings.Repeat("\n", maxLines)))
	assert.Equal(t, []string{
		"long has 1 files and 6001 lines, more than 40 files or 6000 lines: split it",
		"many has 41 files and 82 lines, more than 40 files or 6000 lines: split it",
	}, checkLimits(files))
}
