package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/projection"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestScaleFlags(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"-only speed", `-only: given "speed"`},
		{"-library mvapich", `-library: given "mvapich", want openmpi or mpich`},
		{"-steps 2", "want at least one round, 3 steps and one sequence"},
		{"-rounds 0", "given 0 rounds"},
		{"x", `unexpected argument "x"`},
	} {
		_, err := parseScale(strings.Fields(tt.args), io.Discard)
		assert.ErrorContains(t, err, tt.want)
	}
	o, err := parseScale([]string{"-only", "training,model"}, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, []bool{false, true, true}, []bool{o.wants(partAllReduce), o.wants(partTraining), o.wants(partModel)})
}

// The first steps of a turn do not count.
func TestMedianStep(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "a", "b", "c"), 0o755))
	lines := `{"step_seconds": 9}` + "\n" + `{"step_seconds": 8}` + "\n" + `{"step_seconds": 1}` + "\n" + `{"step_seconds": 3}` + "\n" + `{"step_seconds": 2}` + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a", "b", "c", "metrics.jsonl"), []byte(lines), 0o600))
	got, err := medianStep(dir)
	require.NoError(t, err)
	assert.InDelta(t, 2, got, 0)
	_, err = medianStep(t.TempDir())
	assert.ErrorContains(t, err, "metrics.jsonl below")
}

// A model that is right says what was measured.
func TestScaleModel(t *testing.T) {
	here := projection.Network{Latency: 1e-6, Bandwidth: 1e9}
	exchange := here.AllReduce(4e6, 8, 2)
	speeds := map[string][]float64{
		independent: {2000}, // 100 tokens in 0.1 s each
		twoRanks:    {200 / (0.1 + exchange)},
		fourRanks:   {400 / (0.2 + here.AllReduce(4e6, 8, 4))},
	}
	var b strings.Builder
	require.NoError(t, plaintext.WriteSections(&b, false, modelSections(shape{Parameters: 1e6}, 100, speeds, here)))
	assert.Equal(t, 2, strings.Count(b.String(), "0.0 %"), b.String())
	assert.Contains(t, b.String(), "100 Gb/s RoCE")
	assert.Equal(t, "–", ratio(speeds, ddp, twoRanks))
}
