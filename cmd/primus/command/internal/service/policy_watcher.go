package service

import (
	"github.com/primus-fl/primus/cmd/primus/command/internal/dispatch"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"go.uber.org/fx"
)

// NewPolicyWatcher follows the policy file while the program runs. It is nil when there is none.
// plugins are those of the start.
func NewPolicyWatcher(set graph.Config, file *policyfile.Layer, plugins policyfile.Plugins, m *opmanager.Manager, lc fx.Lifecycle) *policyfile.Watcher {
	if file == nil {
		return nil
	}
	changed := func(file *policyfile.Layer) {
		if next, err := set.Policy.Plugins(file); err != nil || !dispatch.SamePlugins(plugins, next) {
			set.Log.Warn("the policy file now names other plugins, or other settings for them, which take effect at the next start")
		}
	}
	w := policyfile.NewWatcher(file, policyfile.WatchSettings{Manager: m, Log: set.Log, Changed: changed})
	lc.Append(fx.StartStopHook(w.Start, w.Close))
	return w
}
