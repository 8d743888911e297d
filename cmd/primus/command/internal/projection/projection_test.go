package projection_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { commandtest.Main(m, nil) }

// experiment writes the experiment that the guide shows.
func experiment(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(primustest.ModuleRoot(t), "docs", "howto", "before-a-run.md"))
	require.NoError(t, err)
	for _, b := range commandtest.Blocks(string(page)) {
		if b.Language == "yaml" && b.Lines[0] == "# llama_8B.yaml" {
			file := filepath.Join(t.TempDir(), "llama_8B.yaml")
			require.NoError(t, os.WriteFile(file, []byte(strings.Join(b.Lines, "\n")), 0o644))
			return file
		}
	}
	t.Fatal("docs/howto/before-a-run.md has no llama_8B.yaml")
	return ""
}

// result is what the tests read of the JSON.
type result struct {
	Model struct {
		Name string
	}
	Memory struct {
		Parameters float64
		Largest    int `json:"largest_stage"`
		Stages     []struct{ Total float64 }
	}
	DeviceMemory float64 `json:"device_memory"`
	Fits         *bool
	Alternatives []struct {
		Nodes    int
		Settings []string
		Largest  float64 `json:"largest_total"`
		Fits     bool
	}
}

func project(t *testing.T, args ...string) result {
	t.Helper()
	got := commandtest.Run(t, append([]string{"projection", "memory", "-o", "json"}, args...)...)
	require.Zero(t, got.Code, got.Stderr)
	var r result
	require.NoError(t, json.Unmarshal([]byte(got.Out), &r))
	return r
}

// TestAlternativesHold runs the projection again with the settings that are said to fit.
func TestAlternativesHold(t *testing.T) {
	file := experiment(t)
	first := project(t, "--config", file, "--memory", "80GB")
	require.False(t, *first.Fits)
	assert.Equal(t, "llama_8B", first.Model.Name)
	assert.InDelta(t, 80e9, first.DeviceMemory, 0)
	tried := 0
	for _, a := range first.Alternatives {
		if tried++; tried > 12 {
			break
		}
		again := project(t, append([]string{"--config", file, "--memory", "80GB", "--target-nodes", strconv.Itoa(a.Nodes)}, a.Settings...)...)
		assert.Equal(t, a.Fits, *again.Fits, a.Settings)
		assert.InDelta(t, a.Largest, again.Memory.Stages[again.Memory.Largest].Total, 0, a.Settings)
	}
	assert.NotZero(t, tried)
}

// TestFlagsOfPrimus checks the flags that stand for parameters.
func TestFlagsOfPrimus(t *testing.T) {
	file := experiment(t)
	want := project(t, "--config", file, "micro_batch_size=1", "global_batch_size=64", "pipeline_model_parallel_size=2", "num_virtual_stages_per_pipeline_rank=4", "patch_zero_bubble=true")
	got := project(t, "--config", file, "pipeline_model_parallel_size=2", "--micro_batch_size", "1", "--global-batch-size", "64", "--num-virtual-stages-per-pipeline-rank", "4", "--enable-zero-bubble", "--memory-mode", "simulate")
	assert.Equal(t, want, got)
	assert.NotEqual(t, project(t, "--config", file), got)
	for flag, algorithm := range map[string]string{"zbv-formatted": "zbv-formatted", "zbv-greedy-half": "v-half", "zbv-greedy-min": "v-min"} {
		want := project(t, "--config", file, "pipeline_model_parallel_size=4", "patch_primus_pipeline=true", "pp_algorithm="+algorithm)
		assert.Equal(t, want, project(t, "--config", file, "pipeline_model_parallel_size=4", "--pipeline-schedule-algorithm", flag), flag)
	}
}

func TestMarkdown(t *testing.T) {
	got := commandtest.Run(t, "projection", "memory", "--config", experiment(t), "--gpu-arch", "h100", "-o", "md")
	require.Zero(t, got.Code, got.Stderr)
	for _, want := range []string{"- precision bf16, optimizer adam, sharded: optimizer\n", "## does it fit?\n", "| part | bytes | formula | numbers |\n|:--- | ---:|:--- |:--- |\n"} {
		assert.Contains(t, got.Out, want)
	}
}

func TestPerformance(t *testing.T) {
	file := experiment(t)
	got := commandtest.Run(t, "projection", "performance", "--config", file, "--gpu-arch", "mi300x", "--measured-tflops", "500")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "TFLOP/s in bf16, 2615 in fp8; measured 500 TFLOP/s; memory 5300 GB/s, within a node 448, between nodes 50\n")
	rated := commandtest.Run(t, "projection", "performance", "--config", file, "--peak-bf16-tflops", "100", "--memory-bandwidth", "1000", "--intra-node-bandwidth", "100", "-o", "json")
	require.Zero(t, rated.Code, rated.Stderr)
	var r struct {
		Performance struct {
			FLOPsPerStep float64 `json:"flops_per_step"`
			StepSeconds  float64 `json:"step_seconds"`
			Rates        struct {
				BF16 float64 `json:"bf16_flops"`
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(rated.Out), &r))
	assert.InDelta(t, 1e14, r.Performance.Rates.BF16, 0)
	assert.InEpsilon(t, r.Performance.FLOPsPerStep/8/(0.4*1e14), r.Performance.StepSeconds, 0.01)

	both := commandtest.Run(t, "projection", "both", "--config", file, "--gpu-arch", "mi300x", "-o", "md")
	require.Zero(t, both.Code, both.Stderr)
	assert.Contains(t, both.Out, "## does it fit?\n")
	assert.Contains(t, both.Out, "## time of a step, by stage 0, which is the slowest\n")
}

func TestNativeMemory(t *testing.T) {
	file := filepath.Join(primustest.ModuleRoot(t), "examples", "native", "configs", "llama_2M-pretrain.yaml")
	got := commandtest.Run(t, "projection", "memory", "--config", file, "--memory", "1GB")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "memory of llama_2M.yaml, which trains in primus\n  fits: it needs ")
	assert.Contains(t, got.Out, "of 954 MiB (--memory or --gpu-arch), of which 5 % stay free")
	tight := commandtest.Run(t, "projection", "memory", "--config", file, "--memory", "1MB")
	require.Zero(t, tight.Code, tight.Stderr)
	assert.Contains(t, tight.Out, "does not fit")
}

func TestUsage(t *testing.T) {
	file := experiment(t)
	dummy := filepath.Join(primustest.ModuleRoot(t), "examples", "dummy", "configs", "dummy_8B-pretrain.yaml")
	native := filepath.Join(primustest.ModuleRoot(t), "examples", "native", "configs", "llama_2M-pretrain.yaml")
	for args, c := range map[string]struct {
		code int
		want string
	}{
		"memory":                                                            {2, "no experiment given: want --config FILE"},
		"memory --config FILE --memory 80":                                  {2, `--memory: given "80", want a size such as 192GB or 80GiB; see primus projection memory --help`},
		"memory --config FILE --reserve x":                                  {2, `--reserve: given "x", want a size such as 4GB`},
		"memory --config FILE --gpu-arch H10":                               {2, `--gpu-arch: projection: device "H10" is not known`},
		"memory --config FILE --gpu-arc H100":                               {2, "unknown flag --gpu-arc; did you mean --gpu-arch?"},
		"memory --config FILE --target-nodes=-1":                            {2, "--target-nodes: given -1"},
		"memory --config FILE --memory-safety-margin 2 --memory 1GB":        {2, "--memory-safety-margin: given 2, want a fraction from 0 to 1"},
		"memory --config FILE -o yaml":                                      {2, `--output: given "yaml", want table, json or md`},
		"memory --config FILE num_layers=31 pipeline_model_parallel_size=2": {1, "num_layers 31 cannot be cut evenly over 2 pipeline stages"},
		"performance --config FILE":                                         {2, "no rates of the device: want --gpu-arch NAME"},
		"performance --config FILE --gpu-arch H100 --efficiency 2":          {2, "the efficiency is 2, want a number above 0 and up to 1"},
		"performance --config NATIVE --gpu-arch H100":                       {1, "primus benchmark train --config FILE measures its steps"},
		"memory --config FILE --memory-mode benchmark":                      {2, `--memory-mode: given "benchmark", want simulate: nothing is run`},
		"memory --config FILE --pipeline-schedule-algorithm seaailab-ilp":   {2, `--pipeline-schedule-algorithm: given "seaailab-ilp", want auto, zerobubble, zbv-formatted`},
		"memory --config FILE --micro-batch-size=-1":                        {1, "micro_batch_size: given int -1, want a whole number"},
		"memory --config DUMMY":                                             {1, "the framework of pre_trainer is dummy: there are projections for megatron and native"},
	} {
		t.Run(args, func(t *testing.T) {
			words := strings.Fields(strings.NewReplacer("FILE", file, "DUMMY", dummy, "NATIVE", native).Replace("projection " + args))
			got := commandtest.Run(t, words...)
			assert.Equal(t, c.code, got.Code)
			assert.Empty(t, got.Out)
			assert.Contains(t, got.Stderr, c.want)
		})
	}
}

func TestDevicesPerNode(t *testing.T) {
	t.Setenv("GPUS_PER_NODE", "x")
	got := commandtest.Run(t, "projection", "memory", "--config", experiment(t))
	assert.Equal(t, 2, got.Code)
	assert.Contains(t, got.Stderr, `variable GPUS_PER_NODE: given "x", want a number >= 1`)
}

// TestShippedModels compares experiments of Primus with the published counts of their models.
func TestShippedModels(t *testing.T) {
	dir := commandtest.RecordedInputs(t)
	presets := filepath.Join(dir, "primus", "configs")
	files, err := filepath.Glob(filepath.Join(dir, "examples", "megatron", "configs", "*", "*.yaml"))
	require.NoError(t, err)
	published := map[string]float64{
		"llama2_7B": 6_738_415_616, "llama2_13B": 13_015_864_320, "llama2_70B": 68_976_648_192, "llama3.1_8B": 8_030_261_248, "llama3_70B": 70_553_706_496,
		"llama3.1_70B": 70_553_706_496, "llama3.3_70B": 70_553_706_496, "mixtral_8x7B_v0.1": 46_702_792_704, "mixtral_8x22B_v0.1": 140_620_634_112,
		"qwen3_30B_A3B": 30_532_122_624, "deepseek_v2_lite": 15_706_484_224, "deepseek_v2": 235_741_434_880, "deepseek_v3": 671_026_404_352,
		// These presets differ from the published model.
		"llama3.2_1B": 1_235_814_400 + 128256*2048,                        // embeddings are not tied
		"qwen2.5_7B":  7_615_616_512 - 28*(3584+2*512),                    // no biases of Q, K and V
		"qwen2.5_14B": 14_770_033_664 - 48*(5120+2*1024),                  // nor here
		"qwen2.5_32B": 32_763_876_352 - 64*(5120+2*1024),                  // nor here
		"qwen2.5_72B": 72_706_203_648 - 80*(8192+2*1024),                  // nor here
		"qwen3_8B":    8_190_735_360 - 36*2*128,                           // no norms of Q and K
		"qwen3_14B":   14_768_307_200 - 40*2*128,                          // nor here
		"qwen3_32B":   32_762_123_264 - 64*(2*128+2*(64+8)*(128-80)*5120), // nor here, and heads of 80 in place of 128
	}
	checked := map[string]float64{}
	for _, file := range files {
		name, _, _ := strings.Cut(filepath.Base(file), "-")
		if _, ok := published[name]; !ok || strings.Contains(file, "sft") {
			continue
		}
		args := []string{"--config", file, "--configs-dir", presets}
		if strings.HasPrefix(name, "deepseek") { // the experiments leave out what the models have
			args = append(args, "multi_latent_attention=true", "mtp_num_layers=null")
		}
		checked[name] = project(t, args...).Memory.Parameters
		assert.InDelta(t, published[name], checked[name], 0, file)
	}
	assert.GreaterOrEqual(t, len(checked), 15)
}
