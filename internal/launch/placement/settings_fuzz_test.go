package placement_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/internal/launch/placement"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// FuzzSettings reads launcher files and plans a run with each: the plan can be shown, and a
// manifest is YAML for another reader too. Both cost in proportion to the length of the file.
//
// Oracle: second decoder.
func FuzzSettings(f *testing.F) {
	for _, text := range []string{
		"slurm: {partition: gpu, time: '01:00', x-y: [a, 1]}", "container: {image: a, volume: [/a:/b], env: [A=b, C], options: {shm-size: 1g}}",
		"kubernetes: {image: a, namespace: b, node-selector: {c: 'yes'}, env: ['A= b\\n', B], volume: ['pvc:/x'], cpu: 1}", "direct: {env: 1}", "slurm: null\nmain: {x: 1}", "{container: {setup: [\"a'\\\"$\"]}}",
	} {
		f.Add([]byte(text))
	}
	dir := f.TempDir()
	file, home := filepath.Join(dir, "launcher.yaml"), filepath.Join(dir, "home")
	f.Fuzz(func(t *testing.T, text []byte) {
		require.NoError(t, os.WriteFile(file, text, 0o600))
		var s *placement.Settings
		var err error
		primustest.Cost(t, len(text), 50_000, func() { s, err = placement.Load(t.Context(), formats.All(), home, file, nil) })
		if err != nil {
			return
		}
		for _, launcher := range []string{launch.Slurm, launch.Container, launch.Kubernetes} {
			o, err := launch.Options{Nodes: 2, PerNode: 4, Launcher: launcher, Grace: 30 * time.Second}.Resolve(world{}.lookup)
			require.NoError(t, err)
			o.Launcher, o.Grace = launcher, 30*time.Second
			r := placement.Run{Options: o, Name: "a", Program: "/primus", Command: []string{"train"}, Dir: dir, RunDir: dir, Workspace: dir, Resolved: []byte("a: 1\n"), Lookup: world{}.lookup}
			var p *placement.Plan
			primustest.Cost(t, len(text), 50_000, func() { p, err = placement.New(r, s) })
			if err != nil {
				continue
			}
			require.NotEmpty(t, p.Shell()+p.Manifest)
			objects := yaml.NewDecoder(bytes.NewReader([]byte(p.Manifest)))
			for range bytes.Count([]byte(p.Manifest), []byte("\n---\n")) {
				var object struct{ Kind string }
				require.NoError(t, objects.Decode(&object), p.Manifest)
				require.NotEmpty(t, object.Kind)
			}
		}
	})
}
