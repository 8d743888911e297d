package rundir_test

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/rundir"
)

func metrics(t *testing.T, d *rundir.Dir, step int64) *rundir.Metrics {
	t.Helper()
	m, err := d.OpenMetrics(step)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

func record(step int64) rundir.Record {
	return rundir.Record{Step: step, Loss: 5 / float64(step), LR: 1e-3, GradNorm: 0.5, TokensPerSecond: 1e5, StepSeconds: 0.25}
}

func content(t *testing.T, d *rundir.Dir) string {
	t.Helper()
	b, err := os.ReadFile(d.Path(rundir.MetricsName))
	require.NoError(t, err)
	return string(b)
}

func TestALineAStep(t *testing.T) {
	t.Parallel()
	d := open(t, location(t.TempDir()))
	m := metrics(t, d, 0)
	require.NoError(t, m.Append(record(1)))
	withValid := record(2)
	valid := 2.75
	withValid.ValidLoss = &valid
	require.NoError(t, m.Append(withValid))
	require.NoError(t, m.Sync())
	assert.Equal(t, `{"step":1,"loss":5,"lr":0.001,"grad_norm":0.5,"tokens_per_second":100000,"step_seconds":0.25}
{"step":2,"loss":2.5,"valid_loss":2.75,"lr":0.001,"grad_norm":0.5,"tokens_per_second":100000,"step_seconds":0.25}
`, content(t, d))
	assert.Equal(t, []rundir.Record{record(1), withValid}, records(t, m))
	require.NoError(t, m.Close())
	require.NoError(t, m.Close())
}

// fiveLines returns the lines of steps 1 to 5.
func fiveLines(t *testing.T) []string {
	t.Helper()
	d := open(t, location(t.TempDir()))
	m := metrics(t, d, 0)
	for step := int64(1); step <= 5; step++ {
		require.NoError(t, m.Append(record(step)))
	}
	return strings.SplitAfter(content(t, d), "\n")[:5]
}

func TestResumeDropsLaterAndTornLines(t *testing.T) {
	t.Parallel()
	lines := fiveLines(t)
	all := strings.Join(lines, "")
	for _, tt := range []struct {
		name  string
		give  string
		step  int64
		kept  int
		warns int
	}{
		{"nothing to drop", all, 5, 5, 0},
		{"later steps", all, 3, 3, 0},
		{"everything", all, 0, 0, 0},
		{"torn line", all + lines[0][:20], 9, 5, 0},
		{"torn line that is whole JSON", all + strings.TrimSuffix(lines[0], "\n"), 9, 5, 0},
		{"torn line and later steps", all + "{", 4, 4, 0},
		{"garbage in the middle", lines[0] + "garbage\n" + lines[1], 9, 2, 1},
		{"empty", "", 9, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := open(t, location(t.TempDir()))
			require.NoError(t, os.WriteFile(d.Path(rundir.MetricsName), []byte(tt.give), 0o644))
			m := metrics(t, d, tt.step)
			want := strings.Join(lines[:tt.kept], "")
			assert.Equal(t, want, content(t, d))
			assert.Len(t, records(t, m), tt.kept)
			assert.Len(t, m.Warnings(), tt.warns)

			require.NoError(t, m.Append(record(1)))
			assert.Equal(t, want+lines[0], content(t, d))
			assert.Len(t, records(t, m), tt.kept+1)
		})
	}
}

func TestFloatsSurviveTheFile(t *testing.T) {
	t.Parallel()
	d := open(t, location(t.TempDir()))
	want := rundir.Record{Step: 1, Loss: math.Nextafter(2, 3), LR: math.SmallestNonzeroFloat64, GradNorm: math.MaxFloat64, TokensPerSecond: 1.0 / 3}
	require.NoError(t, metrics(t, d, 0).Append(want))
	assert.Equal(t, []rundir.Record{want}, records(t, metrics(t, d, 1)))
}

func TestNumbersThatAreNotFiniteAreRefused(t *testing.T) {
	t.Parallel()
	d := open(t, location(t.TempDir()))
	m := metrics(t, d, 0)
	inf := math.Inf(1)
	for key, r := range map[string]rundir.Record{
		"loss NaN":       {Step: 3, Loss: math.NaN()},
		"grad_norm +Inf": {Step: 3, GradNorm: inf},
		"valid_loss":     {Step: 3, ValidLoss: &inf},
		"lr":             {Step: 3, LR: math.Inf(-1)},
	} {
		err := m.Append(r)
		require.ErrorContains(t, err, key)
		assert.ErrorContains(t, err, "step 3")
	}
	assert.Empty(t, content(t, d))
	require.NoError(t, m.Append(record(1)))
}

func TestAFailedWriteEndsTheFile(t *testing.T) {
	t.Parallel()
	d := open(t, location(t.TempDir()))
	m, err := d.OpenMetrics(0)
	require.NoError(t, err)
	require.NoError(t, m.Append(record(1)))
	require.NoError(t, m.Close())
	err = m.Append(record(2))
	require.ErrorContains(t, err, "step 2")
	assert.Equal(t, err, m.Append(record(3)))
	assert.Len(t, records(t, m), 1)
}

func TestAMetricsFileThatIsADirectory(t *testing.T) {
	t.Parallel()
	d := open(t, location(t.TempDir()))
	require.NoError(t, os.Mkdir(d.Path(rundir.MetricsName), 0o755))
	_, err := d.OpenMetrics(0)
	require.ErrorContains(t, err, rundir.MetricsName)
}

func records(t *testing.T, m *rundir.Metrics) []rundir.Record {
	t.Helper()
	all, err := m.Records()
	require.NoError(t, err)
	return all
}
