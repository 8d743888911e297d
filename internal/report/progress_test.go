package report

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/goldentest"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A run that goes on at step 5 with a step a second: the bar, its time to go, and the lines of both
// logs.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var screen, file bytes.Buffer
		width := func() int { return 90 }
		c := &plaintext.Console{Out: &screen, Width: width}
		p := NewProgress(Screen{
			SetStatus: c.SetStatus, Width: width, Out: &bytes.Buffer{},
			Log:     slog.New(slog.NewMultiHandler(slog.NewTextHandler(c, nil), slog.NewTextHandler(&file, nil))),
			FileLog: slog.New(slog.NewTextHandler(&file, nil)),
		})
		p.RunStarted(backend.Run{Name: "exp", FirstStep: 5, Steps: 10, LogInterval: 2})
		valid := 2.5
		for step := 5; step <= 10; step++ {
			time.Sleep(time.Second)
			s := backend.Step{Step: step, Loss: 3 - float64(step)/10, LR: 1e-3, GradNorm: 0.5, TokensPerSecond: 12_340}
			if step == 7 {
				s.ValidLoss = &valid
				s.CrossEntropy = &valid
			}
			p.StepDone(s)
		}
		p.RunEnded(backend.Result{})
		goldentest.Check(t, "progress.screen.txt", strings.ReplaceAll(strings.ReplaceAll(screen.String(), "\r", "<CR>"), "\x1b[K", "<ERASE>\n"))
		goldentest.Check(t, "progress.file.txt", file.String())
	})
}

// Between two drawings there is a pause, but none before the last step.
func TestProgressIsNotDrawnTooOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var screen bytes.Buffer
		width := func() int { return 90 }
		quiet := slog.New(slog.DiscardHandler)
		c := &plaintext.Console{Out: &screen, Width: width}
		p := NewProgress(Screen{SetStatus: c.SetStatus, Width: width, Log: quiet, FileLog: quiet, Out: &bytes.Buffer{}})
		p.RunStarted(backend.Run{FirstStep: 1, Steps: 1000, LogInterval: 1})
		for step := 1; step <= 1000; step++ {
			time.Sleep(time.Millisecond)
			p.StepDone(backend.Step{Step: step})
		}
		assert.Equal(t, 11, strings.Count(screen.String(), plaintext.EraseRest), "the empty bar and ten more in a second")
		assert.Contains(t, screen.String(), "1000/1000")
		assert.Equal(t, 1, strings.Count(screen.String(), "100%"), "100 % is the end")
	})
}

func TestSummary(t *testing.T) {
	valid := 2.0625
	info := func(id string, kind opregistry.Kind, vendor string) opmanager.ImplInfo {
		return opmanager.ImplInfo{ID: id, Kind: kind, Vendor: vendor}
	}
	stats := []opmanager.ImplStats{
		{Op: "generic_gemm", ImplInfo: info("default.flagos", opregistry.KindFlagos, ""), Calls: 20, Duration: 100 * time.Millisecond, Fallbacks: 20},
		{Op: "generic_gemm", ImplInfo: info("vendor.acme", opregistry.KindVendor, "acme"), Calls: 1200, Duration: 2 * time.Second, Declines: 17, Errors: 3},
		{Op: "rmsnorm_fwd", ImplInfo: info("default.flagos", opregistry.KindFlagos, ""), Calls: 300, Duration: 400 * time.Millisecond},
		{Op: "rmsnorm_fwd", ImplInfo: info("reference.go", opregistry.KindReference, "")},
	}
	run := backend.Run{Name: "llama_2M-pretrain", Dir: "output/local/local/llama_2M-pretrain", FirstStep: 1, Steps: 400}
	losses := backend.RunLosses{FirstLoss: 5.5354, Loss: 1.9312, ValidLoss: &valid, ValidTokens: 131_072}
	done := backend.Result{Run: run, RunLosses: losses, LastStep: 400, Duration: 83 * time.Second,
		Prompt: "func f(x", Sample: "func f(x int) {\n\treturn \x1b[31m\xff}\n"}
	stopped := done
	stopped.LastStep, stopped.Err, stopped.Sample, stopped.ValidLoss = 17, errors.New("device lost"), "", nil
	onDevice := done
	second := device.Work{Commands: 1000, Busy: time.Second, Queued: 2 * time.Second}
	onDevice.Device = &backend.DeviceUse{
		Device: "opencl:0", Description: device.Description{Name: "Chip X", Driver: "Acme OpenCL 1.0"}, Measured: true,
		Memory: device.MemoryUse{Allocated: 1 << 20, Peak: 3 << 20, Reserved: 4 << 20, Total: 8 << 30}, StepTime: 2500 * time.Millisecond,
		Steps: device.Work{Commands: 2000, Busy: 2 * time.Second, Queued: 4 * time.Second},
		Ops:   []backend.OpWork{{Op: "generic_gemm", Impl: "default.flagos", Work: second}, {Op: "rmsnorm_fwd", Impl: "default.flagos", Work: second}, {Work: second}},
	}
	patched := done
	patched.Loss, patched.CrossEntropy = 2.2, &done.Loss

	tests := []struct {
		name  string
		give  backend.Result
		stats []opmanager.ImplStats
	}{
		{"finished", done, stats[2:]},
		{"fallbacks", done, stats},
		{"failed", stopped, stats[2:]},
		{"patched loss", patched, nil},
		{"on a device", onDevice, stats},
		{"before any step", backend.Result{Run: run, Err: backend.ErrInterrupted}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			tt.give.Impls = tt.stats
			require.NoError(t, Summary(&out, tt.give))
			goldentest.Check(t, "summary."+strings.ReplaceAll(tt.name, " ", "_")+".txt", out.String())
		})
	}
}

func TestThousands(t *testing.T) {
	for give, want := range map[float64]string{0: "0", 999.6: "1000", 9999: "9999", 12_345: "12.3k", 1_234_567: "1234.6k", 12_345_678: "12.3M"} {
		assert.Equal(t, want, thousands(give))
	}
}

// A Python framework may know the last step only when it logs one, or never, and go beyond what the
// experiment says.
func TestProgressOfAFramework(t *testing.T) {
	var screen, file bytes.Buffer
	width := func() int { return 90 }
	c := &plaintext.Console{Out: &screen, Width: width}
	p := NewProgress(Screen{
		SetStatus: c.SetStatus, Width: width, Log: slog.New(slog.DiscardHandler), FileLog: slog.New(slog.NewTextHandler(&file, nil)), Out: &bytes.Buffer{},
	})
	p.RunStarted(backend.Run{FirstStep: 1, LogInterval: 1, Devices: 8})
	p.StepDone(backend.Step{Step: 10, Loss: 2})
	p.drawn = time.Time{}
	p.StepDone(backend.Step{Step: 20, Steps: 15, Loss: 1, TFLOPSPerDevice: 98.25, MemoryBytes: 3 << 29})
	assert.Contains(t, file.String(), `"step 10  loss 2.0000`)
	assert.Contains(t, file.String(), "step 20/15  loss 1.0000")
	assert.Contains(t, file.String(), "98.2 TFLOP/s per device  1.50 GiB per device")
	assert.Contains(t, screen.String(), "10  loss 2.000")
	assert.Contains(t, screen.String(), "100% ")
}
