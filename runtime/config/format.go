package config

import (
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"
)

// Limits on one file. They are far above real configurations and keep hostile ones harmless.
const (
	maxFileSize = 1 << 20
	maxDepth    = 100
	maxValues   = 1 << 17
)

// Loader decodes one file format.
type Loader interface {
	// Extensions returns the file name endings of the format, with the dot; the first one is the usual one.
	Extensions() []string
	// Load decodes data into a tree whose origins name file. Of a key that a mapping has twice the later value counts and the
	// earlier one is a collision. The error is an [*Error] with a position.
	Load(file string, data []byte) (Value, []Collision, error)
}

// Loaders returns the supported formats: YAML, JSON and TOML.
func Loaders() []Loader { return []Loader{yamlLoader{}, jsonLoader{}, tomlLoader{}} }

var (
	_ Loader = yamlLoader{}
	_ Loader = jsonLoader{}
	_ Loader = tomlLoader{}
)

// loaderFor picks the format by file name.
func loaderFor(file string) (Loader, bool) {
	extension := path.Ext(file)
	for _, loader := range Loaders() {
		if slices.Contains(loader.Extensions(), extension) {
			return loader, true
		}
	}
	return nil, false
}

func knownExtensions() []string {
	var extensions []string
	for _, loader := range Loaders() {
		extensions = append(extensions, loader.Extensions()...)
	}
	return extensions
}

// decodeFile decodes a file by its extension. A panic of a third-party parser becomes an error of this file.
func decodeFile(file string, data []byte) (root Value, duplicates []Collision, err error) {
	here := Origin{File: file}
	loader, ok := loaderFor(file)
	if !ok {
		return Value{}, nil, &Error{
			Origin:  here,
			Problem: fmt.Sprintf("unknown format %q, expected one of %s", path.Ext(file), strings.Join(knownExtensions(), " ")),
		}
	}
	if len(data) > maxFileSize {
		return Value{}, nil, &Error{Origin: here, Problem: fmt.Sprintf("given %d bytes, expected at most %d", len(data), maxFileSize)}
	}
	defer func() {
		if r := recover(); r != nil {
			root, duplicates, err = Value{}, nil, &Error{Origin: here, Problem: fmt.Sprintf("parser panicked: %v", r)}
		}
	}()
	root, duplicates, err = loader.Load(file, data)
	if err == nil && root.IsNull() {
		err = &Error{Origin: here, Problem: "file is empty", Hint: "write {} for an intentionally empty mapping"}
	}
	return root, duplicates, err
}

// tree builds values for one file and enforces the limits.
type tree struct {
	file       string
	values     int
	duplicates []Collision
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

// put sets key in m; a value that the same mapping gave to the key before is a collision.
func (t *tree) put(m *Map, key string, value Value) {
	if first, again := m.Lookup(key); again {
		t.duplicates = append(t.duplicates, Collision{
			Key: key, Winner: SourceLater, Loser: SourceEarlier, Kept: value, Dropped: first, Hint: "write the key once",
		})
		value = value.replacing(first)
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
