package graph

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops"
	"github.com/primus-fl/primus/vendors/loader"
	"github.com/primus-fl/primus/vendors/plugin"
	"github.com/primus-fl/primus/vendors/plugin/sandbox"
	"go.uber.org/fx"
)

// loadedPlugin is a plugin that the policy names, and the result of loading it.
type loadedPlugin struct {
	module string // as it was named
	path   string
	sum    string
	// dependencies are the libraries beside it that it needs.
	dependencies []plugin.File
	report       *plugin.Report
	isolated     bool
	source       opregistry.Source
	err          error // why it is not used
	fault        error // what its probe found that is allowed for isolated plugins only
}

// pluginSet are the plugins that were named, in order.
type pluginSet struct {
	all    []*loadedPlugin
	closed atomic.Bool // the command has done its work
}

// newPlugins loads the plugins that the policy names. Each keeps its own error.
func newPlugins(set Config, wanted policyfile.Plugins, lc fx.Lifecycle) *pluginSet {
	s := &pluginSet{}
	var wg sync.WaitGroup
	for _, module := range wanted.Modules {
		l := &loadedPlugin{module: module}
		s.all = append(s.all, l)
		wg.Go(func() { l.err = l.probe(set, wanted) })
	}
	wg.Wait()
	var exits error
	if slices.ContainsFunc(s.all, func(l *loadedPlugin) bool { return l.err == nil && !l.named(wanted.Isolate) }) {
		exits = loader.OnExit(s.exited)
		lc.Append(fx.StopHook(func() { s.closed.Store(true) }))
	}
	for i, l := range s.all {
		first := slices.IndexFunc(s.all[:i], func(o *loadedPlugin) bool { return o.path != "" && o.path == l.path })
		if first >= 0 {
			l.err = fmt.Errorf("plugin %s: it is the same library as %s, which %s names before; keep one", l.module, s.all[first].module, wanted.Source(policyfile.FieldPluginModules))
		}
		if l.err == nil && !l.named(wanted.Isolate) {
			l.err = exits
		}
		if l.err == nil {
			l.err = l.open(set, wanted, lc)
		}
	}
	for _, name := range wanted.Isolate {
		meant := func(l *loadedPlugin) bool { return l.named([]string{name}) }
		if name != "*" && !slices.ContainsFunc(s.all, meant) {
			set.Log.Warn(fmt.Sprintf("%s names %q, which is none of the plugins", wanted.Source(policyfile.FieldIsolatePlugins), name))
		}
	}
	return s
}

// exited ends this process with an error when a plugin calls exit, whatever the status, because the
// command is not done. After the command it does nothing: a program with the race detector calls
// exit itself.
func (s *pluginSet) exited() {
	if s.closed.Load() {
		return
	}
	var here []string
	for _, l := range s.all {
		if l.source.Name != "" && !l.isolated {
			here = append(here, fmt.Sprintf("%s (%s)", l.source.Name, l.path))
		}
	}
	if len(here) == 0 { // in its constructors
		here = []string{"one that is being loaded"}
	}
	fmt.Fprintf(os.Stderr, "primus: error: a plugin in this process called exit, so what was asked for is not finished: %s; see --isolate-plugins\n", strings.Join(here, " or "))
	os.Exit(1)
}

// probe finds the library, checks the file and lets a child process load it.
func (l *loadedPlugin) probe(set Config, wanted policyfile.Plugins) (err error) {
	if l.path, err = plugin.Locate(l.module, set.Policy.Flags.Plugins.Searched()); err != nil {
		return err
	}
	file, err := plugin.Inspect(l.path)
	if err != nil {
		return err
	}
	l.path, l.sum, l.dependencies = file.Path, file.SHA256, file.Dependencies
	if err := l.allowed(wanted); err != nil {
		return err
	}
	l.report, err = sandbox.Probe(context.Background(), l.path, childSettings(set, "probe"))
	if l.report != nil && l.named(wanted.Isolate) {
		l.fault, err = err, nil
	}
	return err
}

// allowed refuses a library if the policy lists checksums and does not list its own, or that of a
// library that it needs.
func (l *loadedPlugin) allowed(wanted policyfile.Plugins) error {
	if wanted.SHA256 == nil {
		return nil
	}
	source := wanted.Source(policyfile.FieldPluginSHA256)
	if !slices.Contains(wanted.SHA256, l.sum) {
		return fmt.Errorf("plugin %s: its SHA-256 checksum %s is not among those that %s allows with %s", l.path, l.sum, source, policyfile.FieldPluginSHA256)
	}
	for _, d := range l.dependencies {
		if !slices.Contains(wanted.SHA256, d.SHA256) {
			return fmt.Errorf("plugin %s: it needs %s, whose SHA-256 checksum %s is not among those that %s allows with %s", l.path, d.Path, d.SHA256, source, policyfile.FieldPluginSHA256)
		}
	}
	return nil
}

// open opens a library that has passed its probe, here or in a process of its own.
func (l *loadedPlugin) open(set Config, wanted policyfile.Plugins, lc fx.Lifecycle) error {
	for _, text := range l.report.Capped() {
		if !set.ListPlugins {
			set.Log.Warn(fmt.Sprintf("plugin %s: %s", l.path, text))
		}
	}
	if l.named(wanted.Isolate) {
		i, err := sandbox.Isolate(l.path, l.report, ops.All(), childSettings(set, "serve"), set.Log)
		if err != nil {
			return err
		}
		lc.Append(fx.StopHook(i.Close))
		l.isolated, l.source = true, i.Source()
		if l.fault != nil && !set.ListPlugins {
			set.Log.Warn("isolated, so it is used: " + l.fault.Error())
		}
		return nil
	}
	if n := l.report.Processes; n > 0 && !set.ListPlugins {
		set.Log.Warn(fmt.Sprintf("plugin %s: it left %d processes running, which were ended with its probe; processes that it starts here are not ended", l.path, n))
	}
	p, err := plugin.Open(l.path, plugin.Settings{Ops: ops.All(), Log: set.Log, Report: l.report})
	if err != nil {
		return err
	}
	l.source = p.Source()
	return nil
}

// childSettings returns how a child of this program serves a plugin.
func childSettings(set Config, command string) sandbox.Settings {
	return sandbox.Settings{Command: []string{Self(), "plugins", command}, Timeout: set.Policy.Flags.Plugins.Limit()}
}

// Self returns the file of this program, also when it was replaced.
func Self() string {
	if goruntime.GOOS == "linux" {
		return "/proc/self/exe"
	}
	file, _ := os.Executable()
	return file
}

// register adds the sources of the plugins to a registry that has all others. A plugin that cannot
// be used is an error under a strict policy, else a warning.
func (s *pluginSet) register(reg *opregistry.Registry, policy oppolicy.Policy, set Config) error {
	var faults []error
	for _, l := range s.all {
		if l.err == nil {
			if err := reg.Register(l.source); err != nil {
				l.err = fmt.Errorf("plugin %s: %w", l.path, err)
			}
		}
		if l.err != nil {
			faults = append(faults, l.err)
		}
	}
	switch {
	case set.ListPlugins || len(faults) == 0:
		return nil
	case policy.Strict:
		return fmt.Errorf("the policy is strict (%s), so every plugin has to load:\n%w", policy.Sources[oppolicy.FieldStrict], errors.Join(faults...))
	}
	for _, fault := range faults {
		set.Log.Warn("not used: " + strings.ReplaceAll(fault.Error(), "\n", "; "))
	}
	return nil
}

// named reports whether one of these names is that of the plugin, or of its file, with or without
// the path.
func (l *loadedPlugin) named(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return name == "*" || name == l.module || name == filepath.Base(l.module) || l.report != nil && name == l.report.Name
	})
}
