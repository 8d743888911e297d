package service

import (
	"log/slog"
	"sync"

	"github.com/primus-fl/primus/cmd/primus/command/internal/dispatch"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/internal/serve"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"go.uber.org/fx"
)

// livePolicy changes the policy of a run. The policy file and the policy of the fleet may change
// while it runs, the sources above them do not.
type livePolicy struct {
	sources dispatch.Sources
	manager *opmanager.Manager
	control *serve.Control
	plugins policyfile.Plugins // of the start
	log     *slog.Logger

	mu          sync.Mutex // held while a policy is composed and set, so that the last change wins
	file, fleet *policyfile.Overlay
}

// NewLivePolicy returns the policy of a run, with the policy file that it starts with.
func NewLivePolicy(set graph.Config, file *policyfile.Overlay, plugins policyfile.Plugins, m *opmanager.Manager, control *serve.Control) *livePolicy {
	return &livePolicy{sources: set.Policy, manager: m, control: control, plugins: plugins, log: set.Log, file: file}
}

// setFile puts another policy file in force.
func (l *livePolicy) setFile(file *policyfile.Overlay) (generation uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if generation, err = l.apply(file, l.fleet); err == nil {
		l.file = file
		if next, err := l.sources.Plugins(file); err != nil || !dispatch.SamePlugins(l.plugins, next) {
			l.log.Warn("the policy file now names other plugins, or other settings for them, which take effect at the next start")
		}
	}
	return generation, err
}

// setFleet puts another policy of the fleet in force.
func (l *livePolicy) setFleet(fleet *policyfile.Overlay) (generation uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if generation, err = l.apply(l.file, fleet); err == nil {
		l.fleet = fleet
	}
	return generation, err
}

func (l *livePolicy) apply(file, fleet *policyfile.Overlay) (uint64, error) {
	p, err := l.sources.Over(file, fleet)
	if err != nil {
		return 0, err
	}
	generation, err := l.control.SetBase(p)
	if err != nil {
		return 0, err
	}
	for _, warning := range l.manager.Warnings() {
		l.log.Warn(warning)
	}
	return generation, nil
}

// NewPolicyWatcher follows the policy file while the program runs. It is nil when there is none.
func NewPolicyWatcher(set graph.Config, file *policyfile.Overlay, live *livePolicy, lc fx.Lifecycle) *policyfile.Watcher {
	if file == nil {
		return nil
	}
	w := policyfile.NewWatcher(file, policyfile.WatchSettings{Log: set.Log, Apply: live.setFile})
	lc.Append(fx.StartStopHook(w.Start, w.Close))
	return w
}
