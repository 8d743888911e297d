package config

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/primus-fl/primus/document"
)

// The directories of a preset root.
const (
	modulesDir   = "modules"
	modelsDir    = "models"
	platformsDir = "platforms"
)

// preset loads a preset named by a value of the experiment. dir is below the root, such as
// modules/megatron.
func (r *reader) preset(dir string, name document.Value, keyPath string) (*document.Map, error) {
	text, ok := name.Identifier()
	if !ok || text == "" {
		return nil, document.WrongType(name, keyPath, "the name of a preset in "+dir, "")
	}
	var candidates []string
	if r.formats.Has(text) {
		candidates = []string{text}
	} else {
		for _, extension := range r.formats.Extensions() {
			candidates = append(candidates, text+extension)
		}
	}
	for _, candidate := range candidates {
		relative := path.Join(dir, candidate)
		if path.IsAbs(candidate) || !fs.ValidPath(relative) {
			return nil, &document.Error{
				Origin: name.Origin(), Path: keyPath, Kind: ErrOutsideRoots,
				Problem: fmt.Sprintf("preset %q leaves the preset roots", text),
				Hint:    "use a name relative to " + dir,
			}
		}
		for i := experimentRoot + 1; i < len(r.roots); i++ {
			if f := (location{i, relative}); r.exists(f) {
				return r.load(f, name.Origin())
			}
		}
	}
	return nil, r.presetNotFound(dir, text, name, keyPath)
}

func (r *reader) presetNotFound(dir, text string, name document.Value, keyPath string) error {
	var searched []string
	for _, root := range r.roots[experimentRoot+1:] {
		searched = append(searched, path.Join(root.Name, dir))
	}
	problem := fmt.Sprintf("preset %q not found in %s", text, strings.Join(searched, ", "))
	if len(searched) == 0 {
		problem = fmt.Sprintf("preset %q not found: there are no preset roots", text)
	}
	return &document.Error{Origin: name.Origin(), Path: keyPath, Problem: problem, Hint: r.presetHint(dir, text), Kind: fs.ErrNotExist}
}

// presetHint names the nearest presets and the available ones, or the available frameworks when
// there are none.
func (r *reader) presetHint(dir, text string) string {
	var hints []string
	available := r.list(dir)
	what := "available"
	if len(available) == 0 {
		kind, framework := path.Split(dir)
		what, available = "no presets for "+framework+"; frameworks with presets", r.frameworks(path.Clean(kind))
		text = framework
	}
	if near := nearestNames(strings.TrimSuffix(text, path.Ext(text)), available); len(near) > 0 {
		hints = append(hints, "did you mean "+strings.Join(near, " or ")+"?")
	}
	const shown = 20
	more := ""
	if len(available) > shown {
		more = fmt.Sprintf(" and %d more", len(available)-shown)
		available = available[:shown]
	}
	if len(available) > 0 {
		hints = append(hints, what+": "+strings.Join(available, " ")+more)
	}
	return strings.Join(hints, " ")
}

// list returns the sorted names of all presets below dir in all preset roots, without extensions.
func (r *reader) list(dir string) []string {
	var names []string
	for _, root := range r.roots[experimentRoot+1:] {
		_ = fs.WalkDir(root.FS, dir, func(p string, entry fs.DirEntry, err error) error {
			if err != nil || len(names) >= maxCandidates {
				return fs.SkipAll
			}
			if r.formats.Has(p) && !entry.IsDir() {
				names = append(names, strings.TrimSuffix(strings.TrimPrefix(p, dir+"/"), path.Ext(p)))
			}
			return nil
		})
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (r *reader) frameworks(kind string) []string {
	var names []string
	for _, root := range r.roots[experimentRoot+1:] {
		entries, err := fs.ReadDir(root.FS, kind)
		if err != nil {
			continue
		}
		for _, entry := range entries {
			if entry.IsDir() {
				names = append(names, entry.Name())
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
