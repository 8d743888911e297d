package policy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/dispatch"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opmanager/policyfile"
)

// shownPolicy is the result of `primus policy show`.
type shownPolicy struct {
	oppolicy.View
	CUDA    dispatch.CudaHome `json:"cuda_home,omitzero"` // of the environment
	Plugins *pluginsView      `json:"plugins,omitempty"`  // nil if the policy has nothing about plugins
}

// pluginsView is the part of a policy about plugins in results.
type pluginsView struct {
	Modules []string                  `json:"plugin_modules"`
	SHA256  []string                  `json:"plugin_sha256"` // null allows any
	Isolate []string                  `json:"isolate_plugins"`
	Sources map[oppolicy.Field]string `json:"sources"` // of the fields that are set
}

func viewPlugins(p policyfile.Plugins) *pluginsView {
	if len(p.Sources) == 0 {
		return nil
	}
	return &pluginsView{Modules: append([]string{}, p.Modules...), SHA256: p.SHA256, Isolate: append([]string{}, p.Isolate...), Sources: p.Sources}
}

// pluginRows returns the rows about plugins.
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
