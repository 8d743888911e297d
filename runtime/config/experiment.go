package config

import (
	"context"
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
	// Text, unless nil, is the content of the experiment, whose file is not read then: it need not
	// exist, and says where files that the experiment extends are, and by its extension the format.
	Text []byte
	// Places has, by framework, the keys that say where results go for experiments that leave them out
	// and whose modules all have that framework. Without an entry these keys are required.
	Places map[string]Place
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
	// Lenient is for backends that refuse parameters they do not have: they warn instead.
	Lenient bool
	// Cache keeps presets for further loads; nil keeps nothing.
	Cache *Cache
}

// Place says where the results of an experiment go; see [Experiment.RootPath]. An empty ExpName
// stands for the name of the file without its extension.
type Place struct{ WorkGroup, UserName, ExpName, Workspace string }

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
	// Strict and Lenient are those of [Options], for code that drops values later, such as backends.
	Strict, Lenient bool
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
// reads files, and ends with ctx.
//
// The error joins one [*document.Error] for each problem found; loading stops at the first broken
// file, and checks all keys of the experiment and all its modules before it gives up.
func LoadExperiment(ctx context.Context, file string, options Options) (*Experiment, error) {
	if options.Formats == nil {
		return nil, errors.New("config: no formats given, want Options.Formats, such as formats.All()")
	}
	exp := &Experiment{File: file, Strict: options.Strict, Lenient: options.Lenient}
	r, start, err := newReader(ctx, file, options, &exp.Report)
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
	exp.complete(options.Places)
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
func newReader(ctx context.Context, name string, options Options, report *Report) (*reader, location, error) {
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
		ctx: ctx, roots: append([]Root{root}, options.Presets...), formats: options.Formats, env: options.Env, report: report, cache: options.Cache,
		loaded: map[location]*document.Map{}, text: options.Text,
	}
	start, err := r.locate(absolute)
	if name == "" || err != nil || start.root != experimentRoot {
		return nil, location{}, &document.Error{
			Origin: document.Origin{File: name}, Kind: ErrOutsideRoots,
			Problem: fmt.Sprintf("experiment %q lies outside %s", name, root.dir),
		}
	}
	r.start = start
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

// complete sets the keys that say where results go and are not in the document.
func (e *Experiment) complete(places map[string]Place) {
	defaults, ok := places[e.framework()]
	if !ok {
		return
	}
	if defaults.ExpName == "" {
		name := filepath.Base(e.File)
		defaults.ExpName = strings.TrimSuffix(name, filepath.Ext(name))
	}
	var missing document.Builder
	for i, text := range []string{defaults.WorkGroup, defaults.UserName, defaults.ExpName, defaults.Workspace} {
		if _, given := e.Document.Lookup(placeKeys[i]); !given {
			missing.Set(placeKeys[i], document.StringValue(text))
		}
	}
	e.Document = document.Merge(missing.Map(), e.Document)
}

// framework returns the framework that all modules of the document have, "" if there is none.
func (e *Experiment) framework() string {
	value, _ := e.Document.Lookup("modules")
	modules, _ := value.Map()
	common := ""
	for _, block := range modules.All() {
		module, _ := block.Map()
		framework, _ := module.Lookup("framework")
		name, ok := framework.Identifier()
		if !ok || common != "" && name != common {
			return ""
		}
		common = name
	}
	return common
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
