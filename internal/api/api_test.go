package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const library = `package library

const Limit = 1 << 10

const Half Ratio = 0.5

var Default *Box[int]

type Ratio float64

func (r Ratio) Text() string { return "" }

type Alias = map[string]func(key int) (value string)

type Box[T any] struct {
	base
	Reader
	Value  T
	hidden int
}

// Set sets it.
//
// Deprecated: assign to Value.
func (b *Box[T]) Set(value T) {}

func (b *Box[T]) reset() {}

type base struct{ Kept int }

func (*base) Close() error { return nil }

type Reader interface {
	Read(p []byte) (n int, err error)
	sealed()
}

type Number interface{ ~int | ~float64 }

// Deprecated: use nothing.
func Convert[K comparable, T Number](each func(given T) K, all ...T) (map[K]T, error) { return nil, nil }

func private() {}
`

func TestDescribe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "library.go"), []byte(library), 0o600))
	marked, err := deprecated(listed{Dir: dir, GoFiles: []string{"library.go"}})
	require.NoError(t, err)
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "library.go", library, parser.SkipObjectResolution)
	require.NoError(t, err)
	config := types.Config{}
	pkg, err := config.Check("example.org/library", fset, []*ast.File{file}, nil)
	require.NoError(t, err)
	lines := describe(pkg, "example.org", marked)
	slices.Sort(lines)
	assert.Equal(t, []string{
		"pkg library, const Half Ratio = 0.5",
		"pkg library, const Limit = 1024",
		"pkg library, func Convert[K comparable, T Number](func(T) K, ...T) (map[K]T, error) //deprecated",
		"pkg library, method (*Box) Close() error",
		"pkg library, method (*Box) Set(T) //deprecated",
		"pkg library, method (Ratio) Text() string",
		"pkg library, type Alias = map[string]func(int) string",
		"pkg library, type Box struct, Kept int",
		"pkg library, type Box struct, Value T",
		"pkg library, type Box struct, embedded Reader",
		"pkg library, type Box[T any] struct",
		"pkg library, type Number interface{~int | ~float64}",
		"pkg library, type Ratio float64",
		"pkg library, type Reader interface, Read([]byte) (int, error)",
		"pkg library, type Reader interface, unexported methods",
		"pkg library, var Default *Box[int]",
	}, lines)
}

func TestDifference(t *testing.T) {
	t.Parallel()
	removed, added := difference([]string{"a", "b", "c"}, []string{"b", "c", "d"})
	assert.Equal(t, []string{"a"}, removed)
	assert.Equal(t, []string{"d"}, added)
}

func TestEntries(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []string{"a", "b/c"}, entries("# list\n\na\n  b/c\n# d\n"))
}
