package train_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/recording"
	"github.com/primus-fl/primus/opstest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every op of two steps is recorded, and its impl repeats the recorded result bit for bit.
func TestRecordedCallsReplay(t *testing.T) {
	l := commandtest.NewLab(t)
	dir := filepath.Join(t.TempDir(), "calls")
	got := l.Train("--record-ops", "*", "--record-dir", dir, "train_iters=2")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Stderr, "primus ops replay "+dir)

	replayed := commandtest.Run(t, "ops", "replay", dir, "--repeat", "1", "-o", "json")
	require.Zero(t, replayed.Code, replayed.Stderr)
	var results []recording.Result
	require.NoError(t, json.Unmarshal([]byte(replayed.Out), &results))
	ops, compared := map[string]bool{}, 0
	for _, r := range results {
		ops[r.Op] = true
		assert.False(t, r.Wrong(), r)
		if r.Impl == r.RecordedOn {
			compared++
			assert.True(t, r.Recorded.Equal, "%s %s %v", r.File, r.Impl, r.Recorded)
		}
	}
	assert.Greater(t, compared, 20)
	for _, op := range []string{"generic_gemm", "fused_attn_bwd", "multi_tensor_adam", "multi_tensor_l2norm", "cross_entropy_fwd", "embedding_bwd"} {
		assert.True(t, ops[op], op)
	}
	kit := func(args ...string) []opstest.Result {
		got := commandtest.Run(t, append([]string{"ops", "verify", "--impl", "default.flagos", "--dtype", "f32", "-o", "json"}, args...)...)
		require.Zero(t, got.Code, got.Out+got.Stderr)
		var results []opstest.Result
		require.NoError(t, json.Unmarshal([]byte(got.Out), &results))
		return results
	}
	norms, err := filepath.Glob(filepath.Join(dir, "*rmsnorm_*"))
	require.NoError(t, err)
	with := kit("--recording", strings.Join(norms, ","))
	require.Len(t, with, 2, "only ops with recorded calls")
	without := kit("rmsnorm_fwd", "rmsnorm_bwd")
	assert.Equal(t, without[0].Served+without[1].Served+len(norms), with[0].Served+with[1].Served)

	table := commandtest.Run(t, "ops", "replay", dir, "--impl", "reference.go", "--repeat", "1")
	require.Zero(t, table.Code, table.Stderr)
	assert.Contains(t, table.Out, "000001-embedding_fwd")
}

func TestNoCallIsRecorded(t *testing.T) {
	l := commandtest.NewLab(t)
	got := l.Train("--record-ops", "swiglu", "--record-calls", "step:9", "--record-dir", filepath.Join(t.TempDir(), "calls"), "train_iters=1")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Stderr, "WARN  recorded no call: ")
	sound := l.Train("--record-ops", "swiglu", "--record-calls", "faults", "--record-dir", filepath.Join(t.TempDir(), "calls"), "exp_name=sound", "train_iters=1")
	assert.Contains(t, sound.Stderr, "INFO  recorded no call: none was at fault")
}

// The first op whose result is not finite ends the run, and its call is kept with what it read.
func TestFirstFaultIsNamedAndRecorded(t *testing.T) {
	l := commandtest.NewLab(t)
	dir := filepath.Join(t.TempDir(), "calls")
	got := l.Train("--check-finite", "ops", "--record-ops", "*", "--record-calls", "faults", "--record-dir", dir, "lr=1e30", "lr_warmup_iters=0", "train_iters=3")
	require.Equal(t, 1, got.Code, got.Stderr)
	assert.Regexp(t, `layer 0 attention: op "generic_gemm" in layer 0 \(forward\) on impl "default.flagos": operand "D" holds .* at element \d+; it read A f32 \[.*\] from .* to `, got.Stderr)
	replayed := commandtest.Run(t, "ops", "replay", dir, "--impl", "default.flagos", "-o", "json")
	var results []recording.Result
	require.NoError(t, json.Unmarshal([]byte(replayed.Out), &results))
	require.NotEmpty(t, results)
	assert.Equal(t, "generic_gemm", results[0].Op)
	assert.Equal(t, 2, results[0].Step)
}

// Gradients that overflow while the factor of the loss is found are no fault.
func TestFP16OverflowIsNoFault(t *testing.T) {
	l := commandtest.NewLab(t)
	got := l.Train("--check-finite", "ops", "fp16=true", "train_iters=3")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Stderr, "step 1 is skipped (1 so far): gradients overflow in fp16")
	forward := l.Train("--check-finite", "ops", "fp16=true", "exp_name=forward", "train_iters=3", "lr=1e30", "lr_warmup_iters=0", "initial_loss_scale=1")
	assert.Equal(t, 1, forward.Code)
	assert.Contains(t, forward.Stderr, "(forward) on impl")
}

// The variables of OpenTelemetry turn on the export of spans.
func TestSpansAreExported(t *testing.T) {
	var received sync.Map
	to := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		for _, name := range []string{"gemm forward", "attention backward", "optim", "step", "run"} {
			if bytes.Contains(body, []byte(name)) {
				received.Store(name, true)
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer to.Close()
	l := commandtest.NewLab(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", to.URL)
	got := l.Train("train_iters=2")
	require.Zero(t, got.Code, got.Stderr)
	for _, name := range []string{"gemm forward", "attention backward", "optim", "step", "run"} {
		_, ok := received.Load(name)
		assert.True(t, ok, name)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	got = l.Train("train_iters=3")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Stderr, `no spans are exported: spans: OTEL_EXPORTER_OTLP_PROTOCOL: given "grpc", want http/protobuf`)
}

// checkTrace checks that each rank has events with these names in a timeline, and no other steps.
func checkTrace(t *testing.T, file string, ranks int, names ...string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var trace struct {
		Events []struct {
			Name, Cat string
			Process   int            `json:"pid"`
			Args      map[string]any `json:"args"`
		} `json:"traceEvents"`
	}
	require.NoError(t, json.Unmarshal(text, &trace))
	found := map[string]map[int]bool{}
	for _, name := range names {
		found[name] = map[int]bool{}
	}
	for _, e := range trace.Events {
		if e.Cat == "step" {
			require.Contains(t, names, e.Name)
		}
		if found[e.Name] != nil {
			found[e.Name][e.Process] = true
		}
		if e.Cat == "collective" {
			assert.Equal(t, fmt.Sprintf("ranks 0 to %d", ranks-1), e.Args["group"])
			assert.Positive(t, e.Args["bytes"])
		}
	}
	for name, processes := range found {
		assert.Len(t, processes, ranks, name)
	}
}

func TestTraceOfRun(t *testing.T) {
	l := commandtest.NewLab(t)
	trace := filepath.Join(t.TempDir(), "trace.json")
	got := l.Train("--trace-file", trace, "train_iters=3")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Stderr, trace+" has ")
	checkTrace(t, trace, 1, "step 2", "step 3", "generic_gemm")

	joined := filepath.Join(t.TempDir(), "joined.json")
	got = commandtest.Run(t, "ops", "trace", "join", trace, "--trace-file", joined)
	require.Zero(t, got.Code, got.Stderr)
	checkTrace(t, joined, 1, "step 2", "step 3", "generic_gemm")
	got = commandtest.Run(t, "ops", "trace", "join", trace, trace, "--trace-file", joined)
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, got.Stderr, "want files of different ranks")
}

func TestTapFlagsAreChecked(t *testing.T) {
	l := commandtest.NewLab(t)
	for want, args := range map[string][]string{
		`--check-finite: given "loss", want ops`: {"--check-finite", "loss"},
		`--record-ops: given "generic_gem", which fits no op, so nothing was trained; primus ops list shows all; did you mean "generic_gemm"?`: {"--record-ops", "generic_gem"},
		"--record-dir needs --record-ops":     {"--record-dir", "x"},
		"--record-calls: given \"last\"":      {"--record-ops", "*", "--record-calls", "last"},
		"--trace-steps needs --trace-file":    {"--trace-steps", "1"},
		"--trace-steps: given 0":              {"--trace-file", filepath.Join(t.TempDir(), "a.json"), "--trace-steps", "0"},
		"--trace-file: given \"none/a.json\"": {"--trace-file", "none/a.json"},
		"--record-layers: given \"one\"":      {"--record-ops", "*", "--record-layers", "one"},
	} {
		got := l.Train(args...)
		assert.Equal(t, 2, got.Code, args)
		assert.Contains(t, got.Stderr, want)
	}
	none := commandtest.Run(t, "ops", "replay")
	assert.Equal(t, 2, none.Code)
	assert.Contains(t, none.Stderr, "given no file, want those of calls that train --record-ops kept")
	bad := commandtest.Run(t, "ops", "replay", filepath.Join(t.TempDir(), "none"))
	assert.Equal(t, 2, bad.Code)
	assert.Contains(t, bad.Stderr, "no such file")
}
