package benchmark_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// timed is a row of -o json.
type timed struct {
	Op    string  `json:"op"`
	Bytes int     `json:"bytes"`
	Ranks int     `json:"ranks"`
	P50   float64 `json:"p50_ms"`
	P95   float64 `json:"p95_ms"`
	Right *bool   `json:"right"`
}

func TestCollectivesOfOneRank(t *testing.T) {
	got := commandtest.Run(t, "benchmark", "rccl", "--op", "all_gather", "alltoall", "--min-bytes", "1K", "--max-bytes", "4K", "--iters", "3", "--warmup", "1", "--dtype", "fp16", "--check", "-o", "json")
	require.Zero(t, got.Code, got.Stderr)
	var rows []timed
	require.NoError(t, json.Unmarshal([]byte(got.Out), &rows))
	require.Len(t, rows, 6)
	for i, r := range rows {
		assert.Equal(t, 1024<<(i%3), r.Bytes)
		assert.Equal(t, 1, r.Ranks)
		assert.True(t, *r.Right)
	}
	for flag, wrong := range map[string]string{"--op": "all_reduced", "--sizes": "1X", "--min-bytes": "256M", "--scale": "cubic", "--dtype": "i8", "--iters": "0"} {
		got := commandtest.Run(t, "benchmark", "rccl", flag, wrong)
		assert.Equal(t, 2, got.Code, flag)
		assert.Contains(t, got.Stderr, flag)
	}
}

// Ranks of a launcher of MPI measure together, and the first one prints.
func TestCollectivesOfARealJob(t *testing.T) {
	commandtest.Tools(t, "mpirun")
	run := func(ranks string, args ...string) []timed {
		cmd := exec.Command("mpirun", append([]string{"-n", ranks, os.Args[0], "benchmark"}, args...)...)
		cmd.Env = append(os.Environ(), commandtest.RoleEnv+"=primus", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var rows []timed
		require.NoError(t, json.Unmarshal(out, &rows), string(out))
		return rows
	}
	rows := run("2", "rccl", "all_reduce", "all_gather", "reduce_scatter", "broadcast", "alltoall", "--sizes", "6", "--dtype", "bf16", "--iters", "3", "--warmup", "0", "--check", "-o", "json")
	require.Len(t, rows, 5)
	for _, r := range rows {
		assert.Equal(t, 2, r.Ranks)
		assert.True(t, *r.Right, r.Op)
		assert.LessOrEqual(t, r.P50, r.P95)
	}
	assert.Equal(t, 8, rows[4].Bytes, "a message of alltoall has the same number of elements for each rank")
	rows = run("4", "strided-allgather", "--stride", "2", "--sizes-mb", "1", "--iters", "2", "--warmup", "0", "-o", "json")
	require.Len(t, rows, 2)
	assert.Equal(t, 2, rows[0].Ranks)
	rows = run("4", "strided-allgather", "--stride", "2", "--sizes-mb", "1", "--iters", "2", "--warmup", "0", "--parallel", "-o", "json")
	assert.Len(t, rows, 1)
}

func TestProductsOfModels(t *testing.T) {
	t.Chdir(t.TempDir())
	args := []string{"benchmark", "gemm-deepseek", "--model", "deepseek_v3", "--seqlen", "4", "--hidden-size", "16", "--intermediate-size", "8", "--kv-lora-rank", "4", "--q-lora-rank", "4",
		"--num-attention-heads", "2", "--moe-intermediate-size", "8", "--vocab-size", "32", "--impl", "default.flagos", "--repeat", "1", "--output-file", "report.md"}
	for range 2 {
		got := commandtest.Run(t, args...)
		require.Zero(t, got.Code, got.Stderr)
		assert.Contains(t, got.Out, "attn_q_up 4x384x4 forward")
		assert.Contains(t, got.Out, "attn_q_up 384x4x4 wgrad")
		assert.Contains(t, got.Out, "attn_q_up 4x4x384 dgrad")
		assert.Contains(t, got.Out, "moe_gateup 1x16x16 forward", "an expert has an even share of the tokens, at least one")
		args = append(args, "--append")
	}
	report, err := os.ReadFile("report.md")
	require.NoError(t, err)
	assert.Regexp(t, `(?s)^# primus benchmark gemm-deepseek\n\n\| op \|.*\n\n# primus benchmark gemm-deepseek\n`, string(report))
	got := commandtest.Run(t, "benchmark", "gemm-dense", "--model", "Llama3.1_8")
	assert.Equal(t, 2, got.Code)
	assert.Contains(t, got.Stderr, `did you mean "Llama3.1_8B"?`)
	got = commandtest.Run(t, "benchmark", "gemm", "--trans_a", "--trans_b")
	assert.Equal(t, 2, got.Code)
	got = commandtest.Run(t, "benchmark", "gemm", "-M", "3", "-N", "5", "-K", "7", "--trans_a", "--impl", "default.flagos", "--duration", "0.01")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "3x5x7 wgrad")
}
