package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// trainChild trains 20 steps in a process of its own, which may load the libraries of vendors.
func (l *lab) trainChild(env ...string) outcome {
	l.t.Helper()
	cmd := child(l.t.Context(), env, l.args("train_iters=20")...)
	var out, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &stderr
	code := exitCode(l.t, cmd.Run())
	require.Zero(l.t, code, stderr.String())
	return outcome{code, out.String(), stderr.String()}
}

// rowsOf returns the rows of the table in the summary, by op and impl.
func rowsOf(summary string) map[string][]string {
	rows := map[string][]string{}
	for line := range strings.Lines(summary) {
		if f := strings.Fields(line); len(f) >= 6 {
			rows[f[0]+" "+f[1]] = f
		}
	}
	return rows
}

// The first 20 losses agree whatever kind of impl computes them, and the summary shows which did.
func TestKindsAgree(t *testing.T) {
	t.Parallel()
	reference := newLab(t)
	got := reference.trainChild("TE_FL_PREFER=reference")
	assert.Contains(t, rowsOf(got.out), "generic_gemm reference.go")
	want := reference.records()
	require.Len(t, want, 20)
	agree := func(t *testing.T, l *lab) {
		t.Helper()
		have := l.records()
		require.Len(t, have, 20)
		for i := range want {
			assert.InEpsilon(t, want[i].Loss, have[i].Loss, 1e-3, "step %d", i+1)
		}
	}
	t.Run("flagos", func(t *testing.T) {
		l := newLab(t)
		rows := rowsOf(l.trainChild("TE_FL_PREFER=flagos").out)
		assert.Contains(t, rows, "generic_gemm default.flagos")
		assert.Contains(t, rows, "multi_tensor_adam default.flagos")
		agree(t, l)
	})
	t.Run("vendor without a library", func(t *testing.T) {
		l := newLab(t)
		got := l.trainChild("TE_FL_PREFER=vendor", "PRIMUS_OPENBLAS="+absent, "PRIMUS_ONEDNN="+absent)
		assert.Contains(t, rowsOf(got.out), "generic_gemm vendor.gonum")
		assert.Contains(t, got.stderr, "WARN  Implementation 'vendor.openblas' cannot serve op 'generic_gemm': unavailable: ")
		assert.Contains(t, got.stderr, absent)
		agree(t, l)
	})
	for vendor, others := range map[string]string{"openblas": "PRIMUS_ONEDNN", "onednn": "PRIMUS_OPENBLAS"} {
		t.Run(vendor, func(t *testing.T) {
			env := []string{"TE_FL_PREFER=vendor", others + "=" + absent}
			if reason := unavailable(t, "vendor."+vendor, env); reason != "" {
				t.Skip(reason)
			}
			l := newLab(t)
			got := l.trainChild(env...)
			rows := rowsOf(got.out)
			gemm := rows["generic_gemm vendor."+vendor]
			fallback := rows["generic_gemm default.flagos"]
			assert.True(t, gemm != nil || fallback != nil && fallback[len(fallback)-3] != "-", "used, or declined with a fallback: %s", got.out)
			assert.Contains(t, rows, "rmsnorm_fwd default.flagos", "flagos does the rest")
			agree(t, l)
		})
	}
}

// unavailable returns why a child cannot use an impl of generic_gemm, "" when it can.
func unavailable(t *testing.T, id string, env []string) string {
	t.Helper()
	out, err := child(t.Context(), env, "ops", "list", "generic_gemm", "-o", "json").Output()
	require.NoError(t, err)
	var rows []implRow
	require.NoError(t, json.Unmarshal(out, &rows))
	for _, r := range rows {
		if r.Impl != id {
			continue
		}
		if !r.Available {
			require.NotEmpty(t, r.Reason)
		}
		return r.Reason
	}
	require.Failf(t, "not listed", "%s in %s", id, out)
	return ""
}

// A run in which reference takes much of the time says so once for each op: in the log, at its end, and in the metrics.
func TestSlowReferenceIsTold(t *testing.T) {
	l := newLab(t)
	file := filepath.Join(l.dir, "run.prom")
	t.Setenv("TE_FL_PER_OP", "generic_gemm=reference")
	got := l.train("train_iters=4", "--metrics-textfile", file)
	require.Zero(t, got.code, got.stderr)
	text := " % of the time on 'reference.go': '"
	assert.Equal(t, 1, strings.Count(got.stderr, "WARN  step 1 is slow: op 'generic_gemm' took "), got.stderr)
	assert.Contains(t, got.stderr, text)
	assert.Contains(t, got.stderr, "'default.flagos': not in the per-op order reference (environment TE_FL_PER_OP at 1)")
	assert.Regexp(t, `(?m)^slow        op 'generic_gemm' took \d+ % of the time on 'reference\.go': .* \(4 steps\)$`, got.out)
	metrics, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^primus_reference_ratio\{[^}]*\} 0\.[1-9]`, string(metrics))

	quick := newLab(t)
	t.Setenv("TE_FL_PER_OP", "")
	got = quick.train("train_iters=4")
	assert.NotContains(t, got.stderr+got.out, "slow")
}

// deterministic_mode leaves out vendors whose bits depend on the number of threads, and says so: losses are equal.
func TestDeterministicModeWithVendors(t *testing.T) {
	env := []string{"TE_FL_PREFER=vendor", "PRIMUS_ONEDNN=" + absent}
	if reason := unavailable(t, "vendor.openblas", env); reason != "" {
		t.Skip(reason)
	}
	var losses [][]record
	for _, threads := range []string{"1", "2"} {
		l := newLab(t)
		l.edit("log_interval: 1\n", "log_interval: 1\n      deterministic_mode: true\n")
		got := l.trainChild(append(env, "PRIMUS_THREADS="+threads)...)
		assert.Contains(t, rowsOf(got.out), "generic_gemm vendor.gonum")
		assert.Contains(t, got.stderr, "Implementation 'vendor.openblas' cannot serve op 'generic_gemm': it does not declare that its results have the same bits")
		losses = append(losses, l.records())
	}
	assert.Equal(t, losses[0], losses[1])
}
