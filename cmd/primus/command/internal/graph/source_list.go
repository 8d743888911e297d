package graph

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/primus-fl/primus/internal/plugin"
	"github.com/primus-fl/primus/metrics"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/vendors/plugin/pluginset"
)

// SourceRow is one source of `primus plugins list`.
type SourceRow struct {
	Source  string                   `json:"source"` // "" for a plugin whose name is not known
	Version string                   `json:"version"`
	State   metrics.PluginState      `json:"state"`
	Built   *buildinfo.ModuleVersion `json:"built_from,omitempty"` // the module of what is compiled in
	Module  string                   `json:"module,omitempty"`     // a plugin as it was named
	Path    string                   `json:"path,omitempty"`
	SHA256  string                   `json:"sha256,omitempty"`
	// Dependencies are the libraries beside a plugin that it needs.
	Dependencies []plugin.File     `json:"dependencies,omitempty"`
	ABI          string            `json:"abi,omitempty"`
	Ops          []sourceOp        `json:"ops"`
	Left         []plugin.UnusedOp `json:"left_out,omitempty"`
	Reason       string            `json:"reason"` // why it was rejected, or what was found when it was tried
}

// From says where a source comes from.
func (r *SourceRow) From() string {
	if r.Built != nil {
		return r.Built.String()
	}
	return cmp.Or(r.Path, r.Module)
}

// Findings says why the source was rejected or what is wrong with it, and which of its impls cannot
// serve.
func (r *SourceRow) Findings() []string {
	var all []string
	if r.Reason != "" {
		all = strings.Split(r.Reason, "\n")
	}
	for _, o := range r.Ops {
		if o.Unusable != "" {
			all = append(all, fmt.Sprintf("impl %q cannot serve op %q: %s", o.Impl, o.Op, o.Unusable))
		}
	}
	return all
}

// Usable returns how many impls can run on this machine.
func (r *SourceRow) Usable() int {
	n := 0
	for _, o := range r.Ops {
		if o.Available {
			n++
		}
	}
	return n
}

// sourceOp is an impl of a source.
type sourceOp struct {
	Op        string        `json:"op"`
	Impl      string        `json:"impl_id"`
	Available bool          `json:"available"`
	Reason    string        `json:"reason"`            // why it is not available
	Unusable  string        `json:"unusable,omitzero"` // why it serves no call, of one that was asked for or has no whole family
	Trial     *plugin.Trial `json:"trial,omitempty"`   // of a plugin whose op was tried
}

// SourceList lists the sources of ops of the program, and the plugins that the policy names.
type SourceList struct {
	manager  *opmanager.Manager
	registry *opregistry.Registry
	extras   []extraSource
	plugins  *pluginset.Set
}

func newSourceList(m *opmanager.Manager, r *opregistry.Registry, extras []extraSource, p *pluginset.Set) *SourceList {
	return &SourceList{m, r, extras, p}
}

// Rows returns the sources that are compiled in by name, then the plugins in order.
func (s *SourceList) Rows() []SourceRow {
	snap := s.registry.Snapshot()
	impls := implsBySource(s.manager, snap)
	rows := []SourceRow{}
	for _, src := range snap.Sources() {
		fromPlugin := slices.ContainsFunc(s.plugins.Plugins(), func(p *pluginset.Plugin) bool { return p.Err == nil && p.Source.Name == src.Name })
		if !fromPlugin && len(src.Impls) > 0 {
			built := s.builtFrom(src)
			rows = append(rows, SourceRow{Source: src.Name, Version: src.CurrentVersion(), State: metrics.PluginCompiledIn, Built: &built, Ops: impls[src.Name]})
		}
	}
	for _, p := range s.plugins.Plugins() {
		r := SourceRow{State: metrics.PluginLoaded, Module: p.Module, Path: p.Path, SHA256: p.SHA256, Dependencies: p.Dependencies, Ops: []sourceOp{}}
		if p.Report != nil {
			r.Source, r.Version, r.ABI, r.Left = p.Report.Name, p.Report.Version, p.Report.ABI, p.Report.LeftOut
		}
		if p.Isolated {
			r.State = metrics.PluginIsolated
		}
		if p.Err != nil {
			r.State, r.Reason = metrics.PluginRejected, p.Err.Error()
		} else {
			r.Ops, r.Reason = withTrials(impls[p.Source.Name], p.Report), p.Findings()
		}
		rows = append(rows, r)
	}
	return rows
}

// Plugins implements metrics.PluginLister.
func (s *SourceList) Plugins() []metrics.Plugin {
	var plugins []metrics.Plugin
	for _, r := range s.Rows() {
		plugins = append(plugins, metrics.Plugin{
			Name: cmp.Or(r.Source, filepath.Base(r.Module)), Version: r.Version, State: r.State, Usable: r.Usable() > 0,
		})
	}
	return plugins
}

// builtFrom returns the module that a source is compiled in from.
func (s *SourceList) builtFrom(src opregistry.Source) buildinfo.ModuleVersion {
	for _, extra := range s.extras {
		if extra.Name == src.Name {
			return builtFrom(extra.module)
		}
	}
	return builtFrom(moduleOfSource(src))
}

// withTrials adds the results of the trials of a plugin to its impls.
func withTrials(impls []sourceOp, report *plugin.Report) []sourceOp {
	for i := range impls {
		for _, o := range report.Ops {
			if o.Op == impls[i].Op && o.Impl == impls[i].Impl {
				impls[i].Trial = o.Trial
			}
		}
	}
	return impls
}

// implsBySource returns the impls of every source in the order of the ops.
func implsBySource(m *opmanager.Manager, snap *opregistry.Snapshot) map[string][]sourceOp {
	statuses := map[[2]string]opmanager.ImplStatus{}
	for _, e := range m.ExplainAll() {
		for _, s := range slices.Concat(e.Order, e.Rejected) {
			statuses[[2]string{e.Op, s.ID}] = s
		}
	}
	unusable := map[[2]string]string{}
	for _, u := range m.Unusable() {
		for _, op := range u.Ops {
			unusable[[2]string{op, u.ID}] = u.Reason
		}
	}
	impls := map[string][]sourceOp{}
	for i, op := range snap.Ops() {
		for _, e := range snap.Impls(i) {
			name := [2]string{op.Name(), e.ID}
			s := statuses[name]
			row := sourceOp{Op: op.Name(), Impl: e.ID, Available: s.Available, Unusable: unusable[name]}
			if !s.Available {
				row.Reason = strings.TrimPrefix(s.Reason, "unavailable: ")
			}
			impls[e.Source] = append(impls[e.Source], row)
		}
	}
	return impls
}
