package dispatch

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
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

// PluginFlags are the flags that say which plugins are loaded, and how.
type PluginFlags struct {
	modules, isolate Flag
	dirs             []string
	timeout          time.Duration
}

// AddSideFlags adds the flags that say which plugins are loaded.
func (f *PluginFlags) AddSideFlags(add func(flag *Flag, name, usage string) *pflag.Flag) {
	f.modules.join = ","
	add(&f.modules, "plugin-modules", "load ops from these shared libraries: `FILES` separated by commas")
	add(&f.isolate, "isolate-plugins", "run plugins in processes of their own: a `SWITCH`, or names separated by commas; the flag alone is all").NoOptDefVal = "true"
}

// AddFlags gives a command the flags that say where plugins are and how long they may take.
func (f *PluginFlags) AddFlags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.dirs, "plugin-dir", nil, "look in `DIR` for plugins that are named without a path; may be repeated, before "+envPluginPath)
	flags.DurationVar(&f.timeout, "plugin-timeout", defaultPluginTimeout, "how long a plugin may take to answer when it is probed, or in a process of its own; a `TIME` such as 10s")
	for _, name := range []string{"plugin-dir", "plugin-timeout"} {
		flags.Lookup(name).Annotations = map[string][]string{cli.VariableOnly: nil}
	}
}

// Searched returns the directories for plugins that are named without a path.
func (f *PluginFlags) Searched() []string {
	return slices.DeleteFunc(slices.Concat(f.dirs, filepath.SplitList(os.Getenv(envPluginPath))), func(dir string) bool { return dir == "" })
}

// Limit returns how long a plugin may take.
func (f *PluginFlags) Limit() time.Duration { return cmp.Or(f.timeout, defaultPluginTimeout) }

// Plugins returns what the sources of a policy say about plugins; file is what the policy file
// says. Faults of the experiment are left to load.
func (s *Sources) Plugins(file *policyfile.Layer) (policyfile.Plugins, error) {
	experiment, _ := experimentLayer(s.experiment)
	p := experiment.ApplyPlugins(file.ApplyPlugins(policyfile.Plugins{}))
	var faults []error
	if value, ok := s.Environment().lookup(envPluginModules); ok && strings.TrimSpace(value) != "" {
		faults = append(faults, p.SetModules(value, "environment "+envPluginModules))
	}
	faults = append(faults, s.Flags.Plugins.modules.apply(p.SetModules), s.Flags.Plugins.isolate.apply(p.SetIsolate))
	if s.Flags.Plugins.timeout < 0 {
		faults = append(faults, &oppolicy.Error{Source: "flag --plugin-timeout", Value: s.Flags.Plugins.timeout.String(), Problem: "want a time above 0, such as 10s"})
	}
	if err := errors.Join(faults...); err != nil {
		return p, cli.UsageError{Err: err}
	}
	return p, nil
}

// SamePlugins reports whether two policies ask for the same plugins.
func SamePlugins(a, b policyfile.Plugins) bool {
	return slices.Equal(a.Modules, b.Modules) && slices.Equal(a.SHA256, b.SHA256) && slices.Equal(a.Isolate, b.Isolate) &&
		(a.SHA256 == nil) == (b.SHA256 == nil)
}
