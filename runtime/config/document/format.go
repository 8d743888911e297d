package document

import (
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"
)

// MaxSize is the largest file that is parsed, in bytes.
const MaxSize = 1 << 20

// More limits on one file. All are far above real configurations and keep hostile ones harmless.
const (
	maxDepth  = 100
	maxValues = 1 << 17
)

// Duplicate is a value that has no effect because its mapping has the key again.
type Duplicate struct {
	// Key is the last segment of the key path.
	Key string
	// Kept is the later value and Dropped the earlier one; their origins say where each was written.
	Kept, Dropped Value
}

// Parse decodes a file by the ending of its name. A file that is empty, has more than [MaxSize] bytes, or nests or repeats
// without reason is an error, and so is a panic of a third-party parser. The error is an [*Error].
func Parse(file string, data []byte) (root Value, duplicates []Duplicate, err error) {
	here := Origin{File: file}
	format, ok := loaderFor(file)
	if !ok {
		return Value{}, nil, &Error{
			Origin:  here,
			Problem: fmt.Sprintf("unknown format %q, expected one of %s", path.Ext(file), strings.Join(Extensions(), " ")),
		}
	}
	if len(data) > MaxSize {
		return Value{}, nil, &Error{Origin: here, Problem: fmt.Sprintf("given %d bytes, expected at most %d", len(data), MaxSize)}
	}
	defer func() {
		if r := recover(); r != nil {
			root, duplicates, err = Value{}, nil, &Error{Origin: here, Problem: fmt.Sprintf("parser panicked: %v", r)}
		}
	}()
	root, duplicates, err = format.Load(file, data)
	if err == nil && root.IsNull() {
		err = &Error{Origin: here, Problem: "file is empty", Hint: "write {} for an intentionally empty mapping"}
	}
	return root, duplicates, err
}

// loader decodes one file format.
type loader interface {
	// Extensions returns the file name endings of the format, with the dot; the first one is the usual one.
	Extensions() []string
	// Load decodes data into a tree whose origins name file. Of a key that a mapping has twice the later value counts and the
	// earlier one is a duplicate. The error is an [*Error] with a position.
	Load(file string, data []byte) (Value, []Duplicate, error)
}

func loaders() []loader { return []loader{yamlLoader{}, jsonLoader{}, tomlLoader{}} }

var (
	_ loader = yamlLoader{}
	_ loader = jsonLoader{}
	_ loader = tomlLoader{}
)

// loaderFor picks the format by file name.
func loaderFor(file string) (loader, bool) {
	extension := path.Ext(file)
	for _, l := range loaders() {
		if slices.Contains(l.Extensions(), extension) {
			return l, true
		}
	}
	return nil, false
}

// Extensions returns the file name endings of all formats, with the dot.
func Extensions() []string {
	var extensions []string
	for _, l := range loaders() {
		extensions = append(extensions, l.Extensions()...)
	}
	return extensions
}

// tree builds values for one file and enforces the limits.
type tree struct {
	file       string
	values     int
	duplicates []Duplicate
}

// enter counts one value at a depth.
func (t *tree) enter(origin *Origin, depth int) error {
	t.values++
	if t.values > maxValues {
		return &Error{Origin: *origin, Problem: fmt.Sprintf("more than %d values", maxValues), Hint: "aliases that repeat aliases grow without bound"}
	}
	if depth > maxDepth {
		return &Error{Origin: *origin, Problem: fmt.Sprintf("nested deeper than %d", maxDepth)}
	}
	return nil
}

// put sets key in m; a value that the same mapping gave to the key before is a duplicate.
func (t *tree) put(m *Map, key string, value Value) {
	if first, again := m.Lookup(key); again {
		t.duplicates = append(t.duplicates, Duplicate{Key: key, Kept: value, Dropped: first})
		value = value.Replacing(first)
	}
	m.set(key, value)
}

// lines finds line and column of byte offsets.
type lines struct{ starts []int }

func newLines(data []byte) lines {
	starts := []int{0}
	for i, c := range data {
		if c == '\n' {
			starts = append(starts, i+1)
		}
	}
	return lines{starts}
}

func (l lines) origin(file string, offset int) *Origin {
	line := sort.SearchInts(l.starts, offset+1)
	return &Origin{File: file, Line: line, Column: offset - l.starts[line-1] + 1}
}
