package config

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
)

// experimentRoot is the index of the root the experiment lies in; preset roots follow.
const experimentRoot = 0

// reader loads files with everything they extend. It belongs to one call of LoadExperiment.
type reader struct {
	roots  []Root
	env    func(string) (string, bool)
	report *Report
	cache  *Cache
	// loaded remembers finished files, so that a file extended many times is read once.
	loaded map[location]*Map
	// chain is the path of files being loaded, outermost first.
	chain []location
}

// load reads f, substitutes variables and merges what it extends. from is the place that asked for the file.
func (r *reader) load(f location, from Origin) (*Map, error) {
	if m, ok := r.loaded[f]; ok {
		return m, nil
	}
	if slices.Contains(r.chain, f) {
		return nil, &Error{Origin: from, Path: "extends", Kind: ErrCycle, Problem: "files extend each other: " + r.showChain(f)}
	}
	r.chain = append(r.chain, f)
	defer func() { r.chain = r.chain[:len(r.chain)-1] }()

	file, err := r.source(f, from)
	if err != nil {
		return nil, err
	}
	r.report.Warnings = append(r.report.Warnings, file.report.Warnings...)
	r.report.Collisions = append(r.report.Collisions, file.report.Collisions...)
	merged, err := r.extend(f, file.document)
	if err != nil {
		return nil, err
	}
	r.loaded[f] = merged
	return merged, nil
}

// source reads f and substitutes variables in it.
func (r *reader) source(f location, from Origin) (source, error) {
	if file, ok := r.cache.lookup(f); ok {
		return file, nil
	}
	name := r.display(f)
	data, err := r.read(f)
	if err != nil {
		return source{}, r.readError(name, from, err)
	}
	root, duplicates, err := decodeFile(name, data)
	if err != nil {
		return source{}, err
	}
	root, warnings, err := substitute(root, r.env)
	if err != nil {
		return source{}, err
	}
	document, ok := root.Map()
	if !ok {
		return source{}, wrongType(root, "", "a mapping at the top of the file", "")
	}
	file := source{document, Report{Warnings: warnings, Collisions: duplicates}}
	r.cache.keep(f, file)
	return file, nil
}

func (r *reader) readError(name string, from Origin, err error) error {
	problem := &Error{Origin: from, Err: err}
	if from.IsZero() {
		problem.Origin = Origin{File: name}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		problem.Problem, problem.Err, problem.Kind = fmt.Sprintf("file %q does not exist", name), nil, fs.ErrNotExist
	default:
		if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
			problem.Err = pathErr.Err
		}
		problem.Problem = fmt.Sprintf("read %q", name)
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

// extend merges the files that document extends, later ones over earlier ones, and document over all of them.
func (r *reader) extend(f location, document *Map) (*Map, error) {
	value, ok := document.Lookup("extends")
	if !ok {
		return document, nil
	}
	entries, isList := value.List()
	if !isList {
		entries = []Value{value}
	}
	var base *Map
	for _, entry := range entries {
		name, isText := identifier(entry)
		if !isText || name == "" {
			return nil, wrongType(entry, "extends", "a file name or a list of file names", "")
		}
		target, err := r.resolve(f, name)
		if err != nil {
			return nil, &Error{
				Origin: entry.Origin(), Path: "extends", Kind: ErrOutsideRoots,
				Problem: fmt.Sprintf("path %q leaves the configuration roots", name),
				Hint:    "allowed are files below " + r.rootNames(),
			}
		}
		extended, err := r.load(target, entry.Origin())
		if err != nil {
			return nil, err
		}
		base = Merge(base, extended)
	}
	return Merge(base, document.without("extends")), nil
}

// identifier returns the text of a value that names something: a string, or a scalar that was typed from untyped text,
// such as a substituted variable.
func identifier(v Value) (string, bool) {
	if s, ok := v.Str(); ok {
		return s, true
	}
	if v.guessed && !v.IsNull() {
		return v.Text(), v.Kind() != KindList && v.Kind() != KindMap
	}
	return "", false
}

// Cache keeps the files of preset roots between loads, so that many experiments read a preset once. All loads that share
// a cache must have the same [Options.Presets] and [Options.Env]; changes of the files on disk are not seen. The zero Cache
// is empty. It is safe for concurrent use.
type Cache struct {
	mu    sync.Mutex
	files map[location]source
}

// source is one file after substitution and before what it extends.
type source struct {
	document *Map
	report   Report
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
