package train_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The first 20 losses agree whatever kind of impl computes them, and the summary shows which did.
func TestKindsAgree(t *testing.T) {
	t.Parallel()
	reference := commandtest.NewLab(t)
	got := reference.TrainChild("TE_FL_PREFER=reference")
	assert.Contains(t, commandtest.RowsOf(got.Out), "generic_gemm reference.go")
	want := reference.Records()
	require.Len(t, want, 20)
	agree := func(t *testing.T, l *commandtest.Lab) {
		t.Helper()
		have := l.Records()
		require.Len(t, have, 20)
		for i := range want {
			assert.InEpsilon(t, want[i].Loss, have[i].Loss, 1e-3, "step %d", i+1)
		}
	}
	t.Run("flagos", func(t *testing.T) {
		l := commandtest.NewLab(t)
		rows := commandtest.RowsOf(l.TrainChild("TE_FL_PREFER=flagos").Out)
		assert.Contains(t, rows, "generic_gemm default.flagos")
		assert.Contains(t, rows, "multi_tensor_adam default.flagos")
		agree(t, l)
	})
	t.Run("vendor without a library", func(t *testing.T) {
		l := commandtest.NewLab(t)
		got := l.TrainChild("TE_FL_PREFER=vendor", "PRIMUS_OPENBLAS="+commandtest.Absent, "PRIMUS_ONEDNN="+commandtest.Absent)
		assert.Contains(t, commandtest.RowsOf(got.Out), "generic_gemm vendor.gonum")
		assert.Contains(t, got.Stderr, "WARN  Implementation 'vendor.openblas' cannot serve op 'generic_gemm': unavailable: ")
		assert.Contains(t, got.Stderr, commandtest.Absent)
		agree(t, l)
	})
	for vendor, others := range map[string]string{"openblas": "PRIMUS_ONEDNN", "onednn": "PRIMUS_OPENBLAS"} {
		t.Run(vendor, func(t *testing.T) {
			env := []string{"TE_FL_PREFER=vendor", others + "=" + commandtest.Absent}
			if reason := commandtest.Unavailable(t, "vendor."+vendor, env); reason != "" {
				t.Skip(reason)
			}
			l := commandtest.NewLab(t)
			got := l.TrainChild(env...)
			rows := commandtest.RowsOf(got.Out)
			gemm := rows["generic_gemm vendor."+vendor]
			fallback := rows["generic_gemm default.flagos"]
			assert.True(t, gemm != nil || fallback != nil && fallback[len(fallback)-3] != "-", "used, or declined with a fallback: %s", got.Out)
			assert.Contains(t, rows, "rmsnorm_fwd default.flagos", "flagos does the rest")
			agree(t, l)
		})
	}
}

// A run in which reference takes much of the time says so once for each op: in the log, at its end,
// and in the metrics.
func TestSlowReferenceIsTold(t *testing.T) {
	l := commandtest.NewLab(t)
	file := filepath.Join(l.Dir, "run.prom")
	t.Setenv("TE_FL_PER_OP", "generic_gemm=reference")
	got := l.Train("train_iters=4", "--metrics-textfile", file)
	require.Zero(t, got.Code, got.Stderr)
	text := " % of the time on 'reference.go': '"
	assert.Equal(t, 1, strings.Count(got.Stderr, "WARN  step 1 is slow: op 'generic_gemm' took "), got.Stderr)
	assert.Contains(t, got.Stderr, text)
	assert.Contains(t, got.Stderr, "'default.flagos': not in the per-op order reference (environment TE_FL_PER_OP at 1)")
	assert.Regexp(t, `(?m)^slow        op 'generic_gemm' took \d+ % of the time on 'reference\.go': .* \(4 steps\)$`, got.Out)
	metrics, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^primus_reference_ratio\{[^}]*\} 0\.[1-9]`, string(metrics))

	quick := commandtest.NewLab(t)
	t.Setenv("TE_FL_PER_OP", "")
	got = quick.Train("train_iters=4")
	assert.NotContains(t, got.Stderr+got.Out, "slow")
}

// deterministic_mode leaves out vendors that declare no determinism, and says so:
// losses are equal.
func TestDeterministicModeWithVendors(t *testing.T) {
	env := []string{"TE_FL_PREFER=vendor", "PRIMUS_ONEDNN=" + commandtest.Absent}
	if reason := commandtest.Unavailable(t, "vendor.openblas", env); reason != "" {
		t.Skip(reason)
	}
	var losses [][]commandtest.Record
	for _, threads := range []string{"1", "2"} {
		l := commandtest.NewLab(t)
		l.Edit("log_interval: 1\n", "log_interval: 1\n      deterministic_mode: true\n")
		got := l.TrainChild(append(env, "PRIMUS_THREADS="+threads)...)
		assert.Contains(t, commandtest.RowsOf(got.Out), "generic_gemm default.flagos")
		assert.Contains(t, got.Stderr, "Implementation 'vendor.openblas' cannot serve op 'generic_gemm': it does not declare that its results have the same bits")
		losses = append(losses, l.Records())
	}
	assert.Equal(t, losses[0], losses[1])
}
