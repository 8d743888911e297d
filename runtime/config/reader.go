package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/primus-fl/primus/document"
)

// experimentRoot is the index of the root the experiment lies in; preset roots follow.
const experimentRoot = 0

// reader loads files with everything they extend. It belongs to one call of LoadExperiment.
type reader struct {
	ctx     context.Context
	roots   []Root
	formats *document.Formats
	env     func(string) (string, bool)
	report  *Report
	cache   *Cache
	start   location // of the experiment
	text    []byte   // of the experiment, nil for that of its file
	// loaded remembers finished files, so that a file extended many times is read once.
	loaded map[location]*document.Map
	// chain is the path of files being loaded, outermost first.
	chain []location
}

// load reads f, substitutes variables and merges what it extends. from is the place that asked for
// the file.
func (r *reader) load(f location, from document.Origin) (*document.Map, error) {
	if m, ok := r.loaded[f]; ok {
		return m, nil
	}
	if slices.Contains(r.chain, f) {
		return nil, &document.Error{Origin: from, Path: "extends", Kind: document.ErrCycle, Problem: "files extend each other: " + r.showChain(f)}
	}
	r.chain = append(r.chain, f)
	defer func() { r.chain = r.chain[:len(r.chain)-1] }()

	file, err := r.source(f, from)
	if err != nil {
		return nil, err
	}
	r.report.Warnings = append(r.report.Warnings, file.report.Warnings...)
	r.report.Collisions = append(r.report.Collisions, file.report.Collisions...)
	merged, err := r.extend(f, file.top)
	if err != nil {
		return nil, err
	}
	r.loaded[f] = merged
	return merged, nil
}

// source reads f and substitutes variables in it.
func (r *reader) source(f location, from document.Origin) (source, error) {
	if file, ok := r.cache.lookup(f); ok {
		return file, nil
	}
	name := r.display(f)
	data, err := r.text, error(nil)
	if data == nil || f != r.start {
		data, err = r.read(f)
	}
	if err != nil {
		return source{}, r.readError(name, from, err)
	}
	root, duplicates, err := r.formats.Parse(r.ctx, name, data)
	if err != nil {
		return source{}, err
	}
	root, warnings, err := document.Substitute(root, r.env)
	if err != nil {
		return source{}, err
	}
	top, ok := root.Map()
	if !ok {
		return source{}, document.WrongType(root, "", "a mapping at the top of the file", "")
	}
	file := source{top, Report{Warnings: warnings}}
	file.report.repeat(duplicates)
	r.cache.keep(f, file)
	return file, nil
}

func (r *reader) readError(name string, from document.Origin, err error) error {
	problem := &document.Error{Origin: from, Problem: fmt.Sprintf("read %q", name), Err: err}
	missing := fmt.Sprintf("file %q does not exist", name)
	if from.IsZero() { // the user has named the file
		problem.Origin, problem.Problem, missing = document.Origin{File: name}, "", "file does not exist"
	}
	switch pathErr, ok := errors.AsType[*fs.PathError](err); {
	case errors.Is(err, fs.ErrNotExist):
		problem.Problem, problem.Err, problem.Kind = missing, nil, fs.ErrNotExist
	case ok:
		problem.Err = pathErr.Err
	}
	return problem
}

func (r *reader) showChain(again location) string {
	start := slices.Index(r.chain, again)
	var names []string
	for _, f := range r.chain[start:] {
		names = append(names, r.display(f))
	}
	return strings.Join(append(names, r.display(again)), " -> ")
}

// extend merges the files that own extends, later ones over earlier ones, and own over all of them.
func (r *reader) extend(f location, own *document.Map) (*document.Map, error) {
	value, ok := own.Lookup("extends")
	if !ok {
		return own, nil
	}
	entries, isList := value.List()
	if !isList {
		entries = []document.Value{value}
	}
	var base *document.Map
	for _, entry := range entries {
		name, isText := entry.Identifier()
		if !isText || name == "" {
			return nil, document.WrongType(entry, "extends", "a file name or a list of file names", "")
		}
		target, err := r.resolve(f, name)
		if err != nil {
			return nil, &document.Error{
				Origin: entry.Origin(), Path: "extends", Kind: ErrOutsideRoots,
				Problem: fmt.Sprintf("path %q leaves the configuration roots", name),
				Hint:    "allowed are files below " + r.rootNames(),
			}
		}
		extended, err := r.load(target, entry.Origin())
		if err != nil {
			return nil, err
		}
		base = document.Merge(base, extended)
	}
	return document.Merge(base, own.Without("extends")), nil
}

// Cache keeps the files of preset roots between loads, so that many experiments read a preset once.
// All loads that share a cache must have the same [Options.Formats], [Options.Presets] and
// [Options.Env]; changes of the files on disk are not seen. The zero Cache is empty. It is safe for
// concurrent use.
type Cache struct {
	mu    sync.Mutex
	files map[location]source
}

// source is one file after substitution and before what it extends.
type source struct {
	top    *document.Map
	report Report
}

// lookup finds a file. A nil cache has none.
func (c *Cache) lookup(f location) (source, bool) {
	if c == nil || f.root == experimentRoot {
		return source{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.files[f]
	return s, ok
}

// keep remembers a file. A nil cache forgets it.
func (c *Cache) keep(f location, s source) {
	if c == nil || f.root == experimentRoot {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.files == nil {
		c.files = map[location]source{}
	}
	c.files[f] = s
}
