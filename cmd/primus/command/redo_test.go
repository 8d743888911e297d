package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A step of a run that has ended has the same bits when it is computed again, from a checkpoint
// and from the beginning.
func TestRedo(t *testing.T) {
	l := commandtest.NewLab(t)
	got := l.Train("save_interval=3")
	require.Zero(t, got.Code, got.Stderr)
	dir := l.Path()
	before := filesBelow(t, dir)

	redo := func(args ...string) commandtest.Outcome {
		return commandtest.Run(t, append([]string{"runs", "redo", dir}, args...)...)
	}
	type redone struct {
		Checkpoint *string
		Same       bool
		Steps      []struct {
			Step             int64
			Loss, RedoneLoss float64
			Same             bool
		}
	}
	read := func(got commandtest.Outcome) (r redone) {
		t.Helper()
		require.NoError(t, json.Unmarshal([]byte(got.Out), &r), got.Out+got.Stderr)
		return r
	}
	got = redo("--step", "8", "-o", "json")
	require.Zero(t, got.Code, got.Stderr)
	r := read(got)
	require.NotNil(t, r.Checkpoint)
	assert.Equal(t, "step-00000006", filepath.Base(*r.Checkpoint))
	assert.True(t, r.Same)
	require.Len(t, r.Steps, 2)
	assert.EqualValues(t, 7, r.Steps[0].Step)

	calls := filepath.Join(t.TempDir(), "calls")
	got = redo("--step", "2", "--record-ops", "rmsnorm_fwd", "--record-dir", calls, "--record-layers", "0")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Stderr, "computing steps 1 to 2")
	assert.Contains(t, got.Stderr, "from the beginning: no checkpoint before is left")
	assert.Contains(t, got.Out, "steps 1 to 2")
	assert.Contains(t, got.Out, "the same bits as in the run")
	recorded, err := filepath.Glob(filepath.Join(calls, "*-rmsnorm_fwd.safetensors"))
	require.NoError(t, err)
	assert.NotEmpty(t, recorded)
	assert.Equal(t, before, filesBelow(t, dir), "the run is not changed")

	got = redo("--step", "3", "-o", "json", "--", "lr=0.5")
	assert.Equal(t, 1, got.Code, got.Stderr)
	assert.False(t, read(got).Same)

	for want, args := range map[string][]string{
		"--step: given 9, want one of the steps of run": {"--step", "9"},
		"dispatch differs":                        {"--step", "3", "--", "--per-op", "generic_gemm=reference"},
		"no checkpoint of a step before 3":        {"--step", "3", "--checkpoints", t.TempDir()},
		"--record-layers needs --record-ops":      {"--step", "3", "--record-layers", "0"},
		"want a directory that holds checkpoints": {"--step", "3", "--checkpoints", "nowhere"},
		"want one": {"another", "--step", "3"},
	} {
		got := redo(args...)
		assert.NotZero(t, got.Code, args)
		assert.Contains(t, got.Stderr, want)
	}
}

// filesBelow returns the files below a directory with their sizes and times.
func filesBelow(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			all[strings.TrimPrefix(path, dir)] = info.ModTime().String()
		}
		return err
	}))
	return all
}
