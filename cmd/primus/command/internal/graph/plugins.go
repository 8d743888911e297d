package graph

import (
	"context"
	"fmt"
	"os"
	goruntime "runtime"
	"strings"

	"github.com/primus-fl/primus/internal/plugin/sandbox"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops"
	"github.com/primus-fl/primus/vendors/plugin/pluginset"
	"go.uber.org/fx"
)

// newPlugins loads the plugins that the policy names.
func newPlugins(set Config, p policyfile.Plugins, lc fx.Lifecycle) *pluginset.Set {
	wanted := pluginset.Wanted{Modules: p.Modules, SHA256: p.SHA256, Isolate: p.Isolate}
	wanted.From.Modules, wanted.From.SHA256, wanted.From.Isolate =
		p.Source(policyfile.FieldPluginModules), p.Source(policyfile.FieldPluginSHA256), p.Source(policyfile.FieldIsolatePlugins)
	child := func(command string) sandbox.Settings {
		return sandbox.Settings{Command: []string{Self(), "plugins", command}, Timeout: set.Policy.Flags.Plugins.Limit()}
	}
	loaded := pluginset.Load(context.Background(), wanted, pluginset.Settings{
		Ops: ops.All(), Dirs: set.Policy.Flags.Plugins.Searched(), Probe: child("probe"), Serve: child("serve"),
		Log: set.Log, Quiet: set.ListPlugins, Exited: pluginExited,
	})
	lc.Append(fx.StopHook(loaded.Close))
	return loaded
}

// pluginExited ends this process with an error, whatever the status of the plugin, because the
// command is not done.
func pluginExited(plugins []string) {
	fmt.Fprintf(os.Stderr, "primus: error: a plugin in this process called exit, so what was asked for is not finished: %s; see --isolate-plugins\n", strings.Join(plugins, " or "))
	os.Exit(1)
}

// Self returns the file of this program, also when it was replaced.
func Self() string {
	if goruntime.GOOS == "linux" {
		return "/proc/self/exe"
	}
	file, _ := os.Executable()
	return file
}

// registerPlugins adds the sources of the plugins to a registry that has all others. A plugin that
// cannot be used is an error under a strict policy, else a warning.
func registerPlugins(plugins *pluginset.Set, reg *opregistry.Registry, policy oppolicy.Policy, set Config) error {
	err := plugins.Register(reg)
	switch {
	case set.ListPlugins || err == nil:
		return nil
	case policy.Strict:
		return fmt.Errorf("the policy is strict (%s), so every plugin has to load:\n%w", policy.Sources[oppolicy.FieldStrict], err)
	}
	for _, p := range plugins.Plugins() {
		if p.Err != nil {
			set.Log.Warn("not used: " + strings.ReplaceAll(p.Err.Error(), "\n", "; "))
		}
	}
	return nil
}

// PluginProblems says which plugins cannot be used, and what was found when the others were tried.
func PluginProblems(loaded *pluginset.Set) []string {
	var problems []string
	for _, p := range loaded.Plugins() {
		if p.Err != nil {
			problems = append(problems, "not used: "+strings.ReplaceAll(p.Err.Error(), "\n", "; "))
			continue
		}
		for finding := range strings.SplitSeq(p.Findings(), "\n") {
			if finding != "" {
				problems = append(problems, fmt.Sprintf("plugin %s: %s", p.Path, finding))
			}
		}
	}
	return problems
}
