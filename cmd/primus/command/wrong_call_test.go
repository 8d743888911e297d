package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/recording"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A wrong call of a run is kept in its directory, and replay says who is right.
func TestWrongCallOfARunIsReplayed(t *testing.T) {
	l := commandtest.NewLab(t)
	broken := grouped(command.OpSources, brokenSource())
	got := primusWith(t, broken, l.Args("train_iters=2", "--prefer", "vendor", "exp_name=wrong")...)
	require.Zero(t, got.Code, got.Stderr)
	_, rest, found := strings.Cut(got.Out, "wrong       residual_add on vendor.broken in 1 call; primus ops replay ")
	require.True(t, found, got.Out)
	file, _, _ := strings.Cut(rest, " runs the last one again\n")
	assert.Equal(t, "wrong-calls", filepath.Base(filepath.Dir(file)))
	assert.Contains(t, got.Stderr, "primus ops replay "+file+" runs the call again")

	verdicts := func(code int, args ...string) map[string]recording.Verdict {
		t.Helper()
		got := primusWith(t, broken, append([]string{"ops", "replay", file, "-o", "json"}, args...)...)
		require.Equal(t, code, got.Code, got.Stderr)
		var results []recording.Result
		require.NoError(t, json.Unmarshal([]byte(got.Out), &results))
		all := map[string]recording.Verdict{}
		for _, r := range results {
			assert.True(t, r.RecordedWrong())
			all[r.Impl] = r.Verdict
		}
		return all
	}
	assert.Equal(t, map[string]recording.Verdict{"vendor.broken": recording.Wrong, "default.flagos": recording.Right, "reference.go": recording.Right}, verdicts(1))
	assert.Equal(t, map[string]recording.Verdict{"vendor.broken": recording.Wrong}, verdicts(1, "--impl", "vendor.broken"))
	assert.Equal(t, map[string]recording.Verdict{"default.flagos": recording.Right}, verdicts(0, "--impl", "default.flagos"), "the recorded result is another impl's")
	elsewhere := commandtest.Run(t, "ops", "replay", file) // without the source
	assert.Equal(t, 1, elsewhere.Code, elsewhere.Stderr)

	// A directory that cannot be written costs the file, not the run.
	require.NoError(t, os.RemoveAll(filepath.Dir(file)))
	require.NoError(t, os.WriteFile(filepath.Dir(file), nil, 0o600))
	got = primusWith(t, broken, l.Args("train_iters=2", "load=none", "--prefer", "vendor", "exp_name=wrong")...)
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "wrong       residual_add on vendor.broken in 1 call\n")
	assert.Contains(t, got.Stderr, "WARN  a wrong call of op 'residual_add' on 'vendor.broken' is not kept: ")
}

// Measurements of impls run nothing on the reference beside them, so a wrong impl is measured, too.
// The run finds it.
func TestTuneVerifiesNothing(t *testing.T) {
	l := commandtest.NewLab(t)
	args := append([]string{"ops", "tune", "--prefer", "vendor", "--budget", "1s", "--tuning-file", filepath.Join(t.TempDir(), "tune.json"), "-o", "json"}, l.Args()[2:]...)
	got := primusWith(t, grouped(command.OpSources, brokenSource()), args...)
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, `"vendor.broken"`)
}
