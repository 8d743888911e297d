package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/primus-fl/primus/document"
)

// Options configures [LoadExperiment]. All fields but Formats are optional; by default the process
// environment is read and there are no presets.
type Options struct {
	// Formats are the file formats of experiments and presets, such as those of package formats.
	Formats *document.Formats
	// Presets are the preset roots; the first one that has a preset wins.
	Presets []Root
	// Root is the directory that the experiment and what it extends must lie in. Empty means the
	// working directory when the experiment lies below it, else the directory of the experiment.
	Root string
	// Env looks up environment variables; nil means os.LookupEnv.
	Env func(name string) (value string, ok bool)
	// Overrides are command line tokens, applied to the parameters of one module; see
	// [document.ParseOverrides]. Those of work_group, user_name, exp_name and workspace change the
	// experiment instead.
	Overrides []string
	// Module is the module that the overrides apply to, which must exist. Empty means the only module.
	Module string
	// Strict makes values without effect errors; see [Report.Collisions].
	Strict bool
	// Cache keeps presets for further loads; nil keeps nothing.
	Cache *Cache
}

// Experiment is a loaded experiment file with its presets resolved.
type Experiment struct {
	// File is the path the experiment was loaded from, as given.
	File string
	// WorkGroup, UserName, ExpName and Workspace say where results go; see [Experiment.RootPath].
	WorkGroup, UserName, ExpName, Workspace string
	// Platform is the platform preset with its overrides.
	Platform *document.Map
	// Env is the env block: variables the training process should see. It may be empty.
	Env *document.Map
	// Modules are the modules in file order.
	Modules []*Module
	// Document is the experiment file as loaded, after substitution and extends, before presets.
	Document *document.Map
	// Report lists warnings, and values that have no effect.
	Report Report
	// Strict is [Options.Strict], for code that drops values later, such as backends.
	Strict bool
}

// RootPath joins workspace, work group, user name and experiment name. A later absolute part
// replaces all before it.
func (e *Experiment) RootPath() string {
	root := ""
	for _, part := range []string{e.Workspace, e.WorkGroup, e.UserName, e.ExpName} {
		switch {
		case strings.HasPrefix(part, "/"):
			root = part
		case root == "" || strings.HasSuffix(root, "/"):
			root += part
		default:
			root += "/" + part
		}
	}
	return root
}

// Module returns the module of that name. pre_trainer and post_trainer stand in for each other when
// only the other exists.
func (e *Experiment) Module(name string) (*Module, error) {
	aliases := map[string]string{"pre_trainer": "post_trainer", "post_trainer": "pre_trainer"}
	for _, wanted := range []string{name, aliases[name]} {
		for _, module := range e.Modules {
			if module.Name == wanted {
				return module, nil
			}
		}
	}
	available := "none"
	if len(e.Modules) > 0 {
		available = strings.Join(e.moduleNames(), " ")
	}
	return nil, &document.Error{
		Origin: document.Origin{File: e.File}, Path: "modules",
		Problem: fmt.Sprintf("no module %q", name), Hint: "available modules: " + available,
	}
}

func (e *Experiment) moduleNames() []string {
	names := make([]string, len(e.Modules))
	for i, module := range e.Modules {
		names[i] = module.Name
	}
	return names
}

// LoadExperiment reads an experiment with everything it extends and the presets it names. It only
// reads files.
//
// The error joins one [*document.Error] for each problem found; loading stops at the first broken
// file, and checks all keys of the experiment and all its modules before it gives up.
func LoadExperiment(file string, options Options) (*Experiment, error) {
	if options.Formats == nil {
		return nil, errors.New("config: no formats given, want Options.Formats, such as formats.All()")
	}
	exp := &Experiment{File: file, Strict: options.Strict}
	r, start, err := newReader(file, options, &exp.Report)
	if err != nil {
		return nil, err
	}
	overrides, warnings, err := document.ParseOverrides(options.Overrides)
	exp.Report.Warnings = append(exp.Report.Warnings, warnings...)
	if err != nil {
		return nil, err
	}
	if exp.Document, err = r.load(start, document.Origin{}); err != nil {
		return nil, err
	}
	overrides = exp.place(overrides)
	p := &parser{reader: r, exp: exp, file: r.display(start)}
	p.identity()
	p.platform()
	p.modules()
	p.ignoredKeys()
	if err := errors.Join(p.errs...); err != nil {
		return nil, err
	}
	if err := exp.override(overrides, options.Module); err != nil {
		return nil, err
	}
	if exp.Strict {
		if err := exp.Report.Err(); err != nil {
			return nil, err
		}
	}
	return exp, nil
}

// newReader determines the roots and the place of the experiment in them.
func newReader(name string, options Options, report *Report) (*reader, location, error) {
	absolute, err := filepath.Abs(name)
	if err != nil {
		return nil, location{}, &document.Error{Origin: document.Origin{File: name}, Err: err}
	}
	dir := options.Root
	if dir == "" {
		dir = filepath.Dir(absolute)
		if working, wdErr := os.Getwd(); wdErr == nil && within(working, absolute) {
			dir = working
		}
	}
	root, err := DirRoot(dir)
	if err != nil {
		return nil, location{}, err
	}
	if !filepath.IsAbs(name) {
		root.Name = relativeTo(name, absolute, root.dir)
	}
	r := &reader{
		roots: append([]Root{root}, options.Presets...), formats: options.Formats, env: options.Env, report: report, cache: options.Cache,
		loaded: map[location]*document.Map{},
	}
	start, err := r.locate(absolute)
	if name == "" || err != nil || start.root != experimentRoot {
		return nil, location{}, &document.Error{
			Origin: document.Origin{File: name}, Kind: ErrOutsideRoots,
			Problem: fmt.Sprintf("experiment %q lies outside %s", name, root.dir),
		}
	}
	return r, start, nil
}

func within(dir, absolute string) bool {
	relative, err := filepath.Rel(dir, absolute)
	return err == nil && relative != ".." && !strings.HasPrefix(relative, ".."+string(filepath.Separator))
}

// relativeTo names dir so that joining it with a path below it gives what the user typed.
func relativeTo(name, absolute, dir string) string {
	below, err := filepath.Rel(dir, absolute)
	if prefix, ok := strings.CutSuffix(filepath.Clean(name), below); err == nil && ok {
		return filepath.Clean(prefix)
	}
	return dir
}

// placeKeys say where results go. They belong to the experiment, not to a module, on the command
// line as well.
var placeKeys = []string{"work_group", "user_name", "exp_name", "workspace"}

// place merges the overrides that say where results go into the document, and returns the others.
func (e *Experiment) place(overrides *document.Map) *document.Map {
	var place document.Builder
	for _, key := range placeKeys {
		if value, given := overrides.Lookup(key); given {
			place.Set(key, value)
		}
	}
	e.Document = document.Merge(e.Document, place.Map())
	return overrides.Without(placeKeys...)
}

// override merges command line overrides into the parameters of the selected module.
func (e *Experiment) override(overrides *document.Map, name string) error {
	if name == "" {
		if overrides.Len() == 0 {
			return nil
		}
		if len(e.Modules) != 1 {
			return &document.Error{
				Origin: document.Origin{File: e.File}, Kind: document.ErrUsage, Problem: "overrides need the name of the module they apply to",
				Hint: "modules: " + strings.Join(e.moduleNames(), " "),
			}
		}
		name = e.Modules[0].Name
	}
	module, err := e.Module(name)
	if err != nil {
		return err
	}
	hintUnknown(&e.Report, module.Params, overrides, "")
	module.Params = document.Merge(module.Params, overrides)
	return nil
}
