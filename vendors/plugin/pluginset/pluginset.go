// Package pluginset loads the plugins of a program: it finds and checks the libraries, tries each
// in a child process, and opens it in this process or isolates it in one of its own. A plugin that
// cannot be used is reported and left out; Register adds the ops of the others to a registry.
package pluginset

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/primus-fl/primus/internal/plugin"
	"github.com/primus-fl/primus/internal/plugin/sandbox"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/vendors/loader"
)

// Wanted says which plugins are loaded.
type Wanted struct {
	Modules []string // paths, or names that are looked up in directories
	SHA256  []string // the checksums of the libraries that may be opened; nil allows any
	Isolate []string // the modules that run in processes of their own; "*" is all

	// From describes where each of these was set, for errors.
	From struct{ Modules, SHA256, Isolate string }
}

// Settings say how plugins are loaded.
type Settings struct {
	Ops   []opregistry.Handle // that plugins may implement
	Dirs  []string            // for modules without a path
	Probe sandbox.Settings    // of a child that tries a plugin
	Serve sandbox.Settings    // of a child that runs an isolated plugin
	Log   *slog.Logger        // of warnings
	Quiet bool                // only the use of wrong names is logged; a Plugin has the other warnings

	// Exited is called when a plugin in this process calls exit before Close. It gets the plugins that
	// may have done so, and must end the process.
	Exited func(plugins []string)
}

// Plugin is a plugin that was wanted, and the result of loading it.
type Plugin struct {
	Module       string // as it was wanted
	Path         string // of the file, "" if it was not found
	SHA256       string
	Dependencies []plugin.File  // the libraries beside it that it needs
	Report       *plugin.Report // of the child that tried it, nil without one
	Isolated     bool
	Source       opregistry.Source // of its ops
	Err          error             // why it is not used

	fault error // what its probe found that is allowed for isolated plugins only
}

// Set are the plugins of a program, in the order in which they were wanted.
type Set struct {
	plugins  []*Plugin
	settings Settings
	isolated []*sandbox.Isolated
	closed   atomic.Bool
}

// Load loads plugins. A Plugin that cannot be used has the reason.
func Load(ctx context.Context, wanted Wanted, settings Settings) *Set {
	s := &Set{settings: settings}
	var wg sync.WaitGroup
	for _, module := range wanted.Modules {
		p := &Plugin{Module: module}
		s.plugins = append(s.plugins, p)
		wg.Go(func() { p.Err = p.probe(ctx, settings, wanted) })
	}
	wg.Wait()
	var exits error
	if slices.ContainsFunc(s.plugins, func(p *Plugin) bool { return p.Err == nil && !p.named(wanted.Isolate) }) {
		exits = loader.OnExit(s.exited)
	}
	for i, p := range s.plugins {
		first := slices.IndexFunc(s.plugins[:i], func(o *Plugin) bool { return o.Path != "" && o.Path == p.Path })
		if first >= 0 {
			p.Err = fmt.Errorf("plugin %s: it is the same library as %s, which %s names before; keep one", p.Module, s.plugins[first].Module, wanted.From.Modules)
		}
		if p.Err == nil && !p.named(wanted.Isolate) {
			p.Err = exits
		}
		if p.Err == nil {
			p.Err = s.open(p, wanted)
		}
	}
	for _, name := range wanted.Isolate {
		meant := func(p *Plugin) bool { return p.named([]string{name}) }
		if name != "*" && !slices.ContainsFunc(s.plugins, meant) {
			settings.Log.Warn(fmt.Sprintf("%s names %q, which is not one of the plugins", wanted.From.Isolate, name))
		}
	}
	return s
}

// Plugins returns the plugins in order. They belong to the Set.
func (s *Set) Plugins() []*Plugin { return slices.Clone(s.plugins) }

// Register adds the sources of the plugins to a registry that has all others. It joins the errors
// of the plugins that cannot be used.
func (s *Set) Register(reg *opregistry.Registry) error {
	var faults []error
	for _, p := range s.plugins {
		if p.Err == nil {
			if err := reg.Register(p.Source); err != nil {
				p.Err = fmt.Errorf("plugin %s: %w", p.Path, err)
			}
		}
		faults = append(faults, p.Err)
	}
	return errors.Join(faults...)
}

// Close ends the processes of isolated plugins. Plugins in this process may call exit from now on:
// a program with the race detector calls it at its end.
func (s *Set) Close() error {
	s.closed.Store(true)
	var faults []error
	for _, i := range s.isolated {
		faults = append(faults, i.Close())
	}
	return errors.Join(faults...)
}

// exited reports the plugins that may have called exit.
func (s *Set) exited() {
	if s.closed.Load() {
		return
	}
	var here []string
	for _, p := range s.plugins {
		if p.Source.Name != "" && !p.Isolated {
			here = append(here, fmt.Sprintf("%s (%s)", p.Source.Name, p.Path))
		}
	}
	if len(here) == 0 { // in its constructors
		here = []string{"one that is being loaded"}
	}
	s.settings.Exited(here)
}

// probe finds the library, checks the file and lets a child process load it.
func (p *Plugin) probe(ctx context.Context, settings Settings, wanted Wanted) (err error) {
	if p.Path, err = plugin.Locate(p.Module, settings.Dirs); err != nil {
		return err
	}
	file, err := plugin.Inspect(p.Path)
	if err != nil {
		return err
	}
	p.Path, p.SHA256, p.Dependencies = file.Path, file.SHA256, file.Dependencies
	if err := p.allowed(wanted); err != nil {
		return err
	}
	p.Report, err = sandbox.Probe(ctx, p.Path, settings.Probe)
	if p.Report != nil && p.named(wanted.Isolate) {
		p.fault, err = err, nil
	}
	return err
}

// allowed refuses a library if checksums are listed without its own, or without that of a library
// that it needs.
func (p *Plugin) allowed(wanted Wanted) error {
	if wanted.SHA256 == nil {
		return nil
	}
	if !slices.Contains(wanted.SHA256, p.SHA256) {
		return fmt.Errorf("plugin %s: its SHA-256 checksum %s is not among those that %s allows with plugin_sha256", p.Path, p.SHA256, wanted.From.SHA256)
	}
	for _, d := range p.Dependencies {
		if !slices.Contains(wanted.SHA256, d.SHA256) {
			return fmt.Errorf("plugin %s: it needs %s, whose SHA-256 checksum %s is not among those that %s allows with plugin_sha256", p.Path, d.Path, d.SHA256, wanted.From.SHA256)
		}
	}
	return nil
}

// open opens a library that has passed its probe, here or in a process of its own.
func (s *Set) open(p *Plugin, wanted Wanted) error {
	log := s.settings.Log
	if s.settings.Quiet {
		log = slog.New(slog.DiscardHandler)
	}
	for _, text := range slices.Concat(p.Report.Outdated(), p.Report.Capped()) {
		log.Warn(fmt.Sprintf("plugin %s: %s", p.Path, text))
	}
	if p.named(wanted.Isolate) {
		i, err := sandbox.Isolate(p.Path, p.Report, s.settings.Ops, s.settings.Serve, s.settings.Log)
		if err != nil {
			return err
		}
		s.isolated = append(s.isolated, i)
		p.Isolated, p.Source = true, i.Source()
		if p.fault != nil {
			log.Warn("isolated, so it is used: " + p.fault.Error())
		}
		return nil
	}
	if n := p.Report.Processes; n > 0 {
		log.Warn(fmt.Sprintf("plugin %s: it left %d processes running, which were ended with its probe; processes that it starts here are not ended", p.Path, n))
	}
	opened, err := plugin.Open(p.Path, plugin.Settings{Ops: s.settings.Ops, Log: s.settings.Log, Report: p.Report})
	if err != nil {
		return err
	}
	p.Source = opened.Source()
	return nil
}

// named reports whether one of these names is that of the plugin, or of its file, with or without
// the path.
func (p *Plugin) named(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return name == "*" || name == p.Module || name == filepath.Base(p.Module) || p.Report != nil && name == p.Report.Name
	})
}

// Findings describes what is wrong with a plugin that is used, "" for nothing.
func (p *Plugin) Findings() string {
	if p.fault != nil {
		return p.fault.Error()
	}
	var failures []string
	for _, o := range p.Report.Ops {
		if o.Trial != nil && o.Trial.Failure != "" {
			failures = append(failures, fmt.Sprintf("impl %q of op %q failed: %s", o.Impl, o.Op, o.Trial.Failure))
		}
	}
	for _, u := range p.Report.LeftOut {
		failures = append(failures, fmt.Sprintf("impl %q of op %q is left out: %s", u.Impl, u.Op, u.Reason))
	}
	if n := p.Report.Processes; n > 0 {
		failures = append(failures, fmt.Sprintf("it left %d processes running, which were ended with its probe", n))
	}
	return strings.Join(slices.Concat(failures, p.Report.Outdated(), p.Report.Control, p.Report.Capped()), "\n")
}
