package projection_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// searched is what the tests read of the JSON.
type searched struct {
	Devices   int
	Settings  int
	Projected int
	Best      []struct {
		Settings []string
		Memory   float64
		Plan     struct {
			Parallel struct {
				Tensor, Pipeline, Data int
				Schedule               string
				MicroBatch             int `json:"micro_batch_size"`
			}
			Recompute struct{ Granularity string }
		}
		Performance struct {
			TokensPerSecond float64 `json:"tokens_per_second"`
		}
	}
	Out []struct {
		Reason string
		Count  int
	}
	Smallest *struct {
		Settings []string
		Memory   float64
	}
	Kept []string
}

func search(t *testing.T, code int, args ...string) (searched, string) {
	t.Helper()
	got := commandtest.Run(t, append([]string{"projection", "search", "-o", "json"}, args...)...)
	require.Equal(t, code, got.Code, got.Stderr)
	var r searched
	require.NoError(t, json.Unmarshal([]byte(got.Out), &r))
	return r, got.Stderr
}

// TestSearchAgrees projects what is found again with its settings.
func TestSearchAgrees(t *testing.T) {
	file := experiment(t)
	cluster := []string{"--config", file, "--gpu-arch", "h100", "--target-nodes", "2"}
	r, _ := search(t, 0, append(cluster, "--top", "4")...)
	assert.Equal(t, 16, r.Devices)
	require.Len(t, r.Best, 4)
	for _, one := range r.Best {
		got := commandtest.Run(t, append(append([]string{"projection", "both", "-o", "json"}, cluster...), one.Settings...)...)
		require.Zero(t, got.Code, got.Stderr)
		var both struct {
			Memory struct {
				Memory struct{ Stages []struct{ Total float64 } }
				Fits   bool
			}
			Performance struct {
				Performance struct {
					TokensPerSecond float64 `json:"tokens_per_second"`
				}
			}
		}
		require.NoError(t, json.Unmarshal([]byte(got.Out), &both))
		assert.True(t, both.Memory.Fits)
		largest := 0.0
		for _, s := range both.Memory.Memory.Stages {
			largest = max(largest, s.Total)
		}
		assert.InDelta(t, largest, one.Memory, 0)
		assert.InDelta(t, both.Performance.Performance.TokensPerSecond, one.Performance.TokensPerSecond, 0)
	}
	text := commandtest.Run(t, append([]string{"projection", "search"}, cluster...)...)
	require.Zero(t, text.Code, text.Stderr)
	assert.Contains(t, text.Out, "\nwhy the others are out\n")
}

// TestSearchKeeps checks that overrides and parameters of --keep stay.
func TestSearchKeeps(t *testing.T) {
	file := experiment(t)
	r, _ := search(t, 0, "--config", file, "--gpu-arch", "h100", "--target-nodes", "2", "--keep", "micro_batch_size", "--schedules", "1f1b", "--recompute", "full", "pipeline_model_parallel_size=4")
	assert.ElementsMatch(t, []string{"micro_batch_size", "pipeline_model_parallel_size"}, r.Kept)
	require.NotEmpty(t, r.Best)
	for _, one := range r.Best {
		assert.Equal(t, 4, one.Plan.Parallel.Pipeline)
		assert.Equal(t, 2, one.Plan.Parallel.MicroBatch)
		assert.Equal(t, "1f1b", one.Plan.Parallel.Schedule)
		assert.Equal(t, "full", one.Plan.Recompute.Granularity)
	}
	kept, _ := search(t, 0, "--config", file, "--gpu-arch", "h100", "--target-nodes", "2", "pp_algorithm=zbv-formatted", "patch_primus_pipeline=true", "recompute_granularity=selective", "sequence_parallel=false")
	for _, one := range kept.Best {
		if one.Plan.Parallel.Pipeline > 1 {
			assert.Equal(t, "zbv", one.Plan.Parallel.Schedule)
		}
		assert.Equal(t, "selective", one.Plan.Recompute.Granularity)
		assert.NotContains(t, one.Settings, "sequence_parallel=true")
	}
}

// TestSearchWrites plans the experiment that a search writes.
func TestSearchWrites(t *testing.T) {
	file := experiment(t)
	best := filepath.Join(t.TempDir(), "best.yaml")
	r, _ := search(t, 0, "--config", file, "--gpu-arch", "h100", "--target-nodes", "2", "--write", best)
	got := commandtest.Run(t, "projection", "both", "--config", best, "--gpu-arch", "h100", "--target-nodes", "2", "-o", "json")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, `"fits": true`)
	for _, setting := range r.Best[0].Settings {
		key, _, _ := strings.Cut(setting, "=")
		text, err := os.ReadFile(best)
		require.NoError(t, err)
		assert.Contains(t, string(text), key+":")
	}
	dry := commandtest.Run(t, "train", "pretrain", "--config", best, "--dry-run", "--verbose")
	require.Zero(t, dry.Code, dry.Stderr)
	for _, setting := range r.Best[0].Settings {
		key, _, _ := strings.Cut(setting, "=")
		assert.Contains(t, dry.Out, key)
	}
}

// TestSearchFindsNothing checks what is said when no settings fit.
func TestSearchFindsNothing(t *testing.T) {
	file := experiment(t)
	r, stderr := search(t, 1, "--config", file, "--gpu-arch", "h100", "--memory", "10GB", "--target-nodes", "1")
	assert.Empty(t, r.Best)
	require.NotNil(t, r.Smallest)
	assert.Contains(t, stderr, "no settings fit 8.85 GiB on 8 devices: the smallest need ")
	got := commandtest.Run(t, append([]string{"projection", "memory", "-o", "json", "--config", file, "--target-nodes", "1"}, r.Smallest.Settings...)...)
	require.Zero(t, got.Code, got.Stderr)
	var m result
	require.NoError(t, json.Unmarshal([]byte(got.Out), &m))
	assert.InDelta(t, m.Memory.Stages[m.Memory.Largest].Total, r.Smallest.Memory, 0)
}

func TestSearchUsage(t *testing.T) {
	file := experiment(t)
	native := filepath.Join(primustest.ModuleRoot(t), "examples", "native", "configs", "llama_2M-pretrain.yaml")
	for args, c := range map[string]struct {
		code int
		want string
	}{
		"--config FILE --gpu-arch H100":                                                   {2, "--target-nodes: given 0, want the number of nodes that the model is cut over"},
		"--config FILE --gpu-arch H100 --target-nodes=-1":                                 {2, "--target-nodes: given -1"},
		"--config FILE --gpu-arch H100 --target-nodes 2 --schedules 1f1":                  {2, `--schedules: given "1f1", want some of 1f1b, 1f1b-interleaved, zero-bubble, zbv, v-half, v-min; did you mean "1f1b"?`},
		"--config FILE --gpu-arch H100 --target-nodes 2 --recompute some":                 {2, `--recompute: given "some", want some of none, selective, full`},
		"--config FILE --gpu-arch H100 --target-nodes 2 --keep micro_batch":               {2, `--keep: given "micro_batch", want some of tensor_model_parallel_size`},
		"--config FILE --gpu-arch H100 --target-nodes 2 --top 0":                          {2, "--top: given 0, want a number from 1 to 1000"},
		"--config FILE --gpu-arch H100 --target-nodes 2 --max-chunks 65":                  {1, "given at most 65 chunks, want a number from 1 to 64"},
		"--config FILE --target-nodes 2 --memory 80GB":                                    {2, "no rates of the device"},
		"--config FILE --gpu-arch H100 --target-nodes 2 --write best.txt":                 {2, `--write: given "best.txt"`},
		"--config FILE --gpu-arch H100 --target-nodes 1 --nproc-per-node 7":               {1, "llama_8B cannot be cut over 7 devices as the search may: "},
		"--config FILE --gpu-arch H100 --target-nodes 1 tensor_model_parallel_size=3":     {1, "8 devices cannot be cut into tensor 3"},
		"--config FILE --gpu-arch H100 --target-nodes 1 global_batch_size=null":           {1, "global_batch_size is missing"},
		"--config NATIVE --gpu-arch H100 --target-nodes 1":                                {1, "a search needs the rates of devices"},
		"--config FILE --gpu-arch H100 --target-nodes 1 pipeline_model_parallel_size=nil": {1, "pipeline_model_parallel_size: given"},
	} {
		t.Run(args, func(t *testing.T) {
			words := strings.Fields(strings.NewReplacer("FILE", file, "NATIVE", native).Replace("projection search " + args))
			got := commandtest.Run(t, words...)
			assert.Equal(t, c.code, got.Code)
			assert.Empty(t, got.Out)
			assert.Contains(t, got.Stderr, c.want)
		})
	}
}
