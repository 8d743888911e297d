package pyreader_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/internal/pyreader"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRecordedPlans compares plans with what Primus itself chose for experiments, but for the
// patches that ask the machine.
func TestRecordedPlans(t *testing.T) {
	c := checkout(t)
	var recorded struct {
		Probes []string `json:"probe_ids"`
		Plans  []struct {
			Config, Module, Framework string
			Model                     any
			Version                   string `json:"backend_version"`
			Plan                      map[string][]string
		}
	}
	readJSON(t, filepath.Join(shared, "plan_visible.json"), &recorded)
	require.NotEmpty(t, recorded.Plans)
	presets, err := config.DirRoot(filepath.Join(c.Root, "primus", "configs"))
	require.NoError(t, err)
	noVariable := func(string) (string, bool) { return "", false }
	for _, want := range recorded.Plans {
		e, err := config.LoadExperiment(t.Context(), filepath.Join(c.Root, want.Config), config.Options{Presets: []config.Root{presets}, Env: noVariable, Formats: formats.All()})
		require.NoError(t, err)
		module, err := e.Module(want.Module)
		require.NoError(t, err)
		plan := c.Plan(pyreader.Run{
			Backend: module.Framework, Version: want.Version, Model: want.Model, Module: module.Name, File: e.File, Params: module.Params.Any(),
		})
		got := map[string][]string{}
		for _, d := range plan {
			asks := slices.Contains(recorded.Probes, d.ID)
			if d.Verdict == pyreader.Depends {
				assert.True(t, asks, "%s: %s: %s", want.Config, d.ID, d.Reason)
			}
			if d.Verdict != pyreader.No && !asks {
				got[d.Phase] = append(got[d.Phase], d.ID)
			}
		}
		for phase, ids := range want.Plan {
			ids = slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(recorded.Probes, id) })
			assert.Equal(t, slices.Clip(ids), slices.Clip(append([]string{}, got[phase]...)), "%s: %s", want.Config, phase)
		}
	}
}
