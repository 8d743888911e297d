package command

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/spf13/pflag"
)

// The variables for plugins.
const (
	envPluginModules = "TE_FL_PLUGIN_MODULES"
	envPluginPath    = "PRIMUS_PLUGIN_PATH"
)

// defaultPluginTimeout is long enough for a driver that looks for devices.
const defaultPluginTimeout = 30 * time.Second

// pluginFlags are the flags that say which plugins are loaded, and how.
type pluginFlags struct {
	modules, isolate policyFlag
	dirs             []string
	timeout          time.Duration
}

// addSideFlags adds the flags that say which plugins are loaded.
func (f *pluginFlags) addSideFlags(add func(flag *policyFlag, name, usage string) *pflag.Flag) {
	f.modules.join = ","
	add(&f.modules, "plugin-modules", "load ops from these shared libraries: `FILES` with commas")
	add(&f.isolate, "isolate-plugins", "run plugins in processes of their own: a `SWITCH`, or names with commas; the flag alone is all").NoOptDefVal = "true"
}

// addFlags gives a command the flags that say where plugins are and how long they may take.
func (f *pluginFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.dirs, "plugin-dir", nil, "look in `DIR` for plugins that are named without a path; may be repeated, before "+envPluginPath)
	flags.DurationVar(&f.timeout, "plugin-timeout", defaultPluginTimeout, "how long a plugin may take to answer when it is probed, or in a process of its own; a `TIME` such as 10s")
	for _, name := range []string{"plugin-dir", "plugin-timeout"} {
		flags.Lookup(name).Annotations = map[string][]string{variableOnly: nil}
	}
}

// searched returns the directories for plugins that are named without a path.
func (f *pluginFlags) searched() []string {
	return slices.DeleteFunc(slices.Concat(f.dirs, filepath.SplitList(os.Getenv(envPluginPath))), func(dir string) bool { return dir == "" })
}

// limit returns how long a plugin may take.
func (f *pluginFlags) limit() time.Duration { return cmp.Or(f.timeout, defaultPluginTimeout) }

// plugins returns what the sources of a policy say about plugins; file is what the policy file says. Faults of the
// experiment are left to load.
func (s *policySources) plugins(file *policyfile.Overlay) (policyfile.Plugins, error) {
	experiment, _ := experimentOverlay(s.experiment)
	p := experiment.ApplyPlugins(file.ApplyPlugins(policyfile.Plugins{}))
	var faults []error
	if value, ok := s.environment().lookup(envPluginModules); ok && strings.TrimSpace(value) != "" {
		faults = append(faults, p.SetModules(value, "environment "+envPluginModules))
	}
	faults = append(faults, s.flags.plugins.modules.apply(p.SetModules), s.flags.plugins.isolate.apply(p.SetIsolate))
	if s.flags.plugins.timeout < 0 {
		faults = append(faults, &oppolicy.Error{Source: "flag --plugin-timeout", Value: s.flags.plugins.timeout.String(), Problem: "want a time above 0, such as 10s"})
	}
	if err := errors.Join(faults...); err != nil {
		return p, usageError{err}
	}
	return p, nil
}

func samePlugins(a, b policyfile.Plugins) bool {
	return slices.Equal(a.Modules, b.Modules) && slices.Equal(a.SHA256, b.SHA256) && slices.Equal(a.Isolate, b.Isolate) &&
		(a.SHA256 == nil) == (b.SHA256 == nil)
}

// shownPolicy is the result of `primus policy show`.
type shownPolicy struct {
	oppolicy.View
	CUDA    cudaHome     `json:"cuda_home,omitzero"` // of the environment
	Plugins *pluginsView `json:"plugins,omitempty"`  // nil when nothing is said about plugins
}

// pluginsView is what a policy says about plugins, as results show it.
type pluginsView struct {
	Modules []string                  `json:"plugin_modules"`
	SHA256  []string                  `json:"plugin_sha256"` // null allows any
	Isolate []string                  `json:"isolate_plugins"`
	Sources map[oppolicy.Field]string `json:"sources"` // of what is said
}

func viewPlugins(p policyfile.Plugins) *pluginsView {
	if len(p.Sources) == 0 {
		return nil
	}
	return &pluginsView{Modules: append([]string{}, p.Modules...), SHA256: p.SHA256, Isolate: append([]string{}, p.Isolate...), Sources: p.Sources}
}

// pluginRows returns the rows for what is said about plugins.
func pluginRows(p policyfile.Plugins) []table.Row {
	sums := "any"
	if p.SHA256 != nil {
		sums = cmp.Or(strings.Join(p.SHA256, ","), "none")
	}
	rows := []table.Row{
		{policyfile.FieldPluginModules, cmp.Or(strings.Join(p.Modules, ","), "none"), p.Sources[policyfile.FieldPluginModules]},
		{policyfile.FieldPluginSHA256, sums, p.Sources[policyfile.FieldPluginSHA256]},
		{policyfile.FieldIsolatePlugins, cmp.Or(strings.Join(p.Isolate, ","), "none"), p.Sources[policyfile.FieldIsolatePlugins]},
	}
	return slices.DeleteFunc(rows, func(r table.Row) bool { return r[2] == "" })
}
