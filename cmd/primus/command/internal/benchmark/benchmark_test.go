package benchmark_test

import (
	"encoding/csv"
	"encoding/json"
	"image/png"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBenchmarkTrain(t *testing.T) {
	l := commandtest.NewLab(t)
	got := commandtest.Run(t, "benchmark", "train", "--config", l.Exp, "--steps", "3", "--warmup=1", "--threads", "2", "-o", "json", "num_layers=2")
	require.Zero(t, got.Code, got.Stderr)
	var r struct {
		Parameters      int     `json:"parameters"`
		Threads         int     `json:"threads"`
		TokensPerStep   int     `json:"tokens_per_step"`
		TokensPerSecond float64 `json:"tokens_per_second"`
		FLOPsPerToken   float64 `json:"flops_per_token"`
		PeakBytes       uint64  `json:"peak_bytes"`
		Loss            float64 `json:"loss"`
		OutsideOps      float64 `json:"outside_ops_ms"`
		Step            struct {
			Median float64 `json:"median"`
			Min    float64 `json:"min"`
			Max    float64 `json:"max"`
			Count  int     `json:"count"`
		} `json:"step_ms"`
		Shape map[string]any `json:"shape"`
		Ops   []struct {
			Op    string  `json:"op"`
			Impl  string  `json:"impl"`
			Calls float64 `json:"calls"`
			MS    float64 `json:"ms"`
			Share float64 `json:"share"`
		} `json:"ops"`
	}
	require.NoError(t, json.Unmarshal([]byte(got.Out), &r))
	assert.Equal(t, 3, r.Step.Count)
	assert.LessOrEqual(t, r.Step.Min, r.Step.Median)
	assert.LessOrEqual(t, r.Step.Median, r.Step.Max)
	assert.Equal(t, 2, r.Threads)
	assert.Equal(t, 4*32, r.TokensPerStep)
	assert.InEpsilon(t, float64(r.TokensPerStep)/r.Step.Median*1e3, r.TokensPerSecond, 1e-9)
	// Two layers of 32·(64 + 32 + 3·64) weights, a head of 256·32, and attention over 32 elements and
	// 32 keys.
	assert.Equal(t, 6.*(2*32*(64+32+3*64)+256*32)+6*2*32*32, r.FLOPsPerToken)
	assert.InDelta(t, 5.5, r.Loss, 1)
	if runtime.GOOS == "linux" {
		assert.Greater(t, r.PeakBytes, uint64(1<<20))
	}
	assert.Equal(t, map[string]any{
		"layers": 2., "hidden": 32., "ffn": 64., "heads": 4., "groups": 2., "vocab": 256., "seq": 32., "batch": 2., "micro_batches": 2., "tied": false,
	}, r.Shape)
	calls, share := map[string]float64{}, 0.
	for _, o := range r.Ops {
		assert.Equal(t, "default.flagos", o.Impl)
		calls[o.Op] = o.Calls
		share += o.Share
	}
	assert.Equal(t, 2., calls["multi_tensor_adam"], "one call for each group of weights, in each step")
	assert.Equal(t, 2.*(2*4*3+3), calls["generic_gemm"], "two micro-batches of three products a linear layer")
	assert.LessOrEqual(t, share, 1.0001)
	assert.GreaterOrEqual(t, r.OutsideOps, 0.)
	assert.NoDirExists(t, l.Workspace, "nothing is written")
}

func TestBenchmarkTrainTable(t *testing.T) {
	l := commandtest.NewLab(t)
	got := commandtest.Run(t, "benchmark", "train", "--config", l.Exp, "--steps=1", "--warmup=0", "--prefer", "reference")
	require.Zero(t, got.Code, got.Stderr)
	for _, want := range []string{"tokens/s", "generic_gemm", "reference.go", "(outside of ops)"} {
		assert.Contains(t, got.Out, want)
	}
}

func TestBenchmarkTrainRefusesOtherBackends(t *testing.T) {
	l := commandtest.NewLab(t)
	l.Edit("framework: native", "framework: megatron")
	got := commandtest.Run(t, "benchmark", "train", "--config", l.Exp)
	assert.NotZero(t, got.Code)
	assert.NotEmpty(t, got.Stderr)
}

type implBenchmark struct {
	Op, Shape, DType, Impl, Reason string
	Time                           *struct{ Median float64 } `json:"time_ms"`
	GFLOPS                         float64
}

func TestBenchmarkImpls(t *testing.T) {
	for _, args := range []string{
		"gemm --shape 8x9x10,3x4x5 --layout forward,wgrad",
		"gemm --shape 8x9x10 --layout forward,dgrad --groups 3 --dtype bf16,f32",
		"attention --shape 1x8x4x2x8 --pass both",
		"ops rmsnorm_bwd swiglu --shape 4x8",
		"ops rmsnorm_bwd swiglu --shape 4x8 --dtype f16",
	} {
		t.Run(args, func(t *testing.T) {
			got := commandtest.Run(t, append([]string{"benchmark"}, strings.Fields(args+" --repeat 2 --threads 1 -o json --impl default.flagos,reference.go")...)...)
			require.Zero(t, got.Code, got.Stderr)
			var rows []implBenchmark
			require.NoError(t, json.Unmarshal([]byte(got.Out), &rows))
			impls := map[string]int{}
			for _, r := range rows {
				require.NotNil(t, r.Time, "%+v", r)
				assert.Positive(t, r.Time.Median)
				impls[r.Impl]++
			}
			assert.Equal(t, impls["default.flagos"], impls["reference.go"])
			assert.GreaterOrEqual(t, impls["reference.go"], 2)
		})
	}
}

// A library that is not there has a row that says so, as every impl that is registered.
func TestBenchmarkSaysWhatDidNotRun(t *testing.T) {
	got := commandtest.Run(t, "benchmark", "gemm", "--shape", "4x4x4", "--repeat", "1", "-o", "csv")
	require.Zero(t, got.Code, got.Stderr)
	rows, err := csv.NewReader(strings.NewReader(got.Out)).ReadAll()
	require.NoError(t, err)
	reasons := map[string]string{}
	for _, r := range rows[1:] {
		reasons[r[4]] = r[len(r)-1]
	}
	assert.Contains(t, reasons["vendor.openblas"], commandtest.Absent)
	assert.Contains(t, reasons, "default.flagos")
	assert.Empty(t, reasons["default.flagos"])
}

func TestBenchmarkPlot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bars.png")
	got := commandtest.Run(t, "benchmark", "ops", "swiglu", "residual_add", "--shape", "4x8", "--repeat", "1", "--plot", file)
	require.Zero(t, got.Code, got.Stderr)
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	picture, err := png.Decode(f)
	require.NoError(t, err)
	assert.Greater(t, picture.Bounds().Dx(), 500)
}

func TestBenchmarkUsage(t *testing.T) {
	for give, want := range map[string]string{
		"":                                     "",
		"trian":                                `did you mean "train"`,
		"train":                                "no experiment given",
		"train --config x --steps 0":           "--steps: given 0",
		"gemm --groups -3":                     `--groups: given "-3", want a number of products, 0 for the plain op`,
		"train --config x --steps many":        `--steps: given "many", want a number of steps`,
		"train --config x -o csv":              `--output: given "csv", want table or json`,
		"gemm --shape 3x4":                     `"3x4" with 2 sizes, want ROWSxCOLSxINNER`,
		"gemm --shape 0x4x4":                   "numbers from 1",
		"gemm --shape 4x4xk":                   "numbers from 1",
		"gemm --layout forwrd":                 `did you mean "forward"`,
		"gemm --impl vendor.onedn":             `did you mean "vendor.onednn"`,
		"gemm --dtype f8":                      "want f32, bf16 or f16",
		"gemm --repeat 0":                      "--repeat: given 0",
		"gemm -o xml":                          "want table, json or csv",
		"gemm --plot chart.jpg":                "ends in .png",
		"gemm 4x4x4":                           `unexpected argument "4x4x4"`,
		"attention --shape 1x2x3x2x4":          "a divisor of the 3 heads",
		"attention --mask casual":              "want causal or no_mask",
		"attention --pass backwards":           "want forward, backward or both",
		"ops rmsnorm_fdw":                      `did you mean "rmsnorm_fwd"`,
		"ops generic_gemm":                     "is not measured here",
		"gemm --shape 1000000000x1000000000x1": "at most",
	} {
		t.Run(give, func(t *testing.T) {
			got := commandtest.Run(t, append([]string{"benchmark"}, strings.Fields(give)...)...)
			assert.Contains(t, got.Stderr, want)
			assert.Equal(t, want == "", got.Code == 0)
		})
	}
}
