package document

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/meter"
)

// MaxSize is the largest file that is parsed, in bytes.
const MaxSize = 1 << 20

// More limits on one file. All are far above real configurations and keep hostile ones harmless.
const (
	maxDepth  = 100
	maxValues = 1 << 17
)

// newMeter returns the budget of one file.
func newMeter(ctx context.Context) *meter.Meter {
	return meter.New(ctx, "the file", "want a smaller one; aliases that repeat aliases grow without bound",
		meter.Budget{Bytes: MaxSize, Steps: maxValues, Unit: "values"})
}

// Duplicate is a value that has no effect because its mapping has the key again.
type Duplicate struct {
	// Key is the last segment of the key path.
	Key string
	// Kept is the later value and Dropped the earlier one; their origins say where each was written.
	Kept, Dropped Value
}

// Loader reads one file format.
type Loader interface {
	// Name is what users call the format, in lower case: yaml.
	Name() string
	// Extensions returns the file name endings of the format, with the dot; the first one is the usual
	// one.
	Extensions() []string
	// Load decodes data into a tree whose origins name file. A [Tree] helps: it enforces the limits,
	// ends with ctx, and of a key that a mapping has twice it keeps the later value and records the
	// earlier one. The error is an [*Error] with a position.
	Load(ctx context.Context, file string, data []byte) (Value, []Duplicate, error)
}

// Renderer is a [Loader] of a format that documents can also be written in.
type Renderer interface {
	Loader
	// Render returns m as text that loads back to equal values. With origins, the text says of each
	// value where it was written and what it replaced; see [Value.Note]. What the format cannot hold
	// is spelled as text or is an [*Error].
	Render(m *Map, origins bool) ([]byte, error)
}

// Formats is an immutable set of file formats, told apart by the endings of file names. It is safe
// for concurrent use.
type Formats struct{ loaders []Loader }

// NewFormats returns the set of these formats; two that share a name or an ending are an error.
func NewFormats(loaders ...Loader) (*Formats, error) {
	var errs []error
	taken := map[string]Loader{}
	for _, l := range loaders {
		if l.Name() == "" || len(l.Extensions()) == 0 {
			errs = append(errs, fmt.Errorf("document: format %q of %T: want a name and a file name ending", l.Name(), l))
		}
		for _, mark := range append(l.Extensions(), l.Name()) {
			if first, again := taken[mark]; again {
				errs = append(errs, fmt.Errorf("document: two formats for %q: %T and %T; remove one", mark, first, l))
			}
			taken[mark] = l
		}
	}
	return &Formats{loaders: slices.Clone(loaders)}, errors.Join(errs...)
}

// Extensions returns the file name endings of all formats, with the dot.
func (f *Formats) Extensions() []string {
	var extensions []string
	for _, l := range f.loaders {
		extensions = append(extensions, l.Extensions()...)
	}
	return extensions
}

// Has reports whether there is a format for the ending of a file name.
func (f *Formats) Has(file string) bool {
	_, ok := f.loaderOf(file)
	return ok
}

func (f *Formats) loaderOf(file string) (Loader, bool) {
	extension := path.Ext(file)
	for _, l := range f.loaders {
		if slices.Contains(l.Extensions(), extension) {
			return l, true
		}
	}
	return nil, false
}

// Renderers returns the formats that documents can be written in.
func (f *Formats) Renderers() []Renderer {
	var renderers []Renderer
	for _, l := range f.loaders {
		if r, ok := l.(Renderer); ok {
			renderers = append(renderers, r)
		}
	}
	return renderers
}

// Renderer returns the format of that name, in any case.
func (f *Formats) Renderer(name string) (Renderer, error) {
	var names []string
	for _, r := range f.Renderers() {
		if names = append(names, r.Name()); strings.EqualFold(r.Name(), name) {
			return r, nil
		}
	}
	return nil, fmt.Errorf("document: given format %q, want one of %s", name, strings.Join(names, " "))
}

// RendererOf returns the format for the ending of a file name, the same with which the file would
// be loaded.
func (f *Formats) RendererOf(file string) (Renderer, error) {
	var extensions []string
	for _, r := range f.Renderers() {
		if slices.Contains(r.Extensions(), path.Ext(file)) {
			return r, nil
		}
		extensions = append(extensions, r.Extensions()...)
	}
	return nil, fmt.Errorf("document: file %q ends with %q, want one of %s", file, path.Ext(file), strings.Join(extensions, " "))
}

// Parse decodes a file by the ending of its name. A file that is empty, has more than [MaxSize]
// bytes, or nests or repeats without reason is an error, and so is a panic of a loader. The error
// is an [*Error], also if ctx has ended.
func (f *Formats) Parse(ctx context.Context, file string, data []byte) (Value, []Duplicate, error) {
	format, ok := f.loaderOf(file)
	if !ok {
		return Value{}, nil, &Error{
			Origin:  Origin{File: file},
			Problem: fmt.Sprintf("unknown format %q, want one of %s", path.Ext(file), strings.Join(f.Extensions(), " ")),
		}
	}
	return Parse(ctx, format, file, data)
}

// Parse decodes a file in a given format, whatever its name, as [Formats.Parse] does.
func Parse(ctx context.Context, format Loader, file string, data []byte) (root Value, duplicates []Duplicate, err error) {
	here := Origin{File: file}
	if err := newMeter(ctx).Allocate(int64(len(data))); err != nil {
		return Value{}, nil, &Error{Origin: here, Err: err}
	}
	defer func() {
		if r := recover(); r != nil {
			root, duplicates, err = Value{}, nil, &Error{Origin: here, Problem: fmt.Sprintf("parser panicked: %v", r)}
		}
	}()
	root, duplicates, err = format.Load(ctx, file, data)
	if err == nil && root.IsNull() {
		err = &Error{Origin: here, Problem: "file is empty", Hint: "write {} for an intentionally empty mapping"}
	}
	return root, duplicates, err
}

// Tree watches over a [Loader] that builds the values of one file: it enforces the limits and
// collects duplicates.
type Tree struct {
	meter      *meter.Meter
	duplicates []Duplicate
}

// NewTree returns a Tree for a file. It ends with ctx.
func NewTree(ctx context.Context) Tree { return Tree{meter: newMeter(ctx)} }

// Reader returns a reader of the data of the file, for parsers that read it piece by piece. It ends
// with ctx.
func (t *Tree) Reader(data []byte) io.Reader { return t.meter.Reader(bytes.NewReader(data)) }

// Err returns why the reading of the file was ended early: a limit, or ctx.
func (t *Tree) Err(origin Origin) error {
	if err := t.meter.Err(); err != nil {
		return &Error{Origin: origin, Err: err}
	}
	return nil
}

// Enter counts one value at a depth below the root, which has depth 0. It returns an error beyond
// the limits.
func (t *Tree) Enter(origin Origin, depth int) error {
	if err := t.meter.Spend(1); err != nil {
		return &Error{Origin: origin, Err: err}
	}
	if depth > maxDepth {
		return &Error{Origin: origin, Problem: fmt.Sprintf("nested deeper than %d", maxDepth)}
	}
	return nil
}

// Put sets key in a mapping; a value that the same mapping gave to the key before is a duplicate.
func (t *Tree) Put(b *Builder, key string, value Value) {
	if first, again := b.m.Lookup(key); again {
		t.duplicates = append(t.duplicates, Duplicate{Key: key, Kept: value, Dropped: first})
		value = value.Replacing(first)
	}
	b.Set(key, value)
}

// Duplicates returns the values that [Tree.Put] replaced.
func (t *Tree) Duplicates() []Duplicate { return t.duplicates }
