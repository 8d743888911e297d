package metrics_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/metrics"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTraining(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	train, err := metrics.NewTraining(reg, metrics.TrainingSettings{PeakFLOPS: 1000})
	require.NoError(t, err)
	defer train.Close()
	assert.True(t, math.IsNaN(value(t, reg, "primus_train_loss", nil)), "not known yet")
	assert.True(t, math.IsNaN(value(t, reg, "primus_train_valid_loss", nil)), "not known yet")

	train.RunStarted(backend.Run{FirstStep: 5, Steps: 7, FLOPsPerToken: 10})
	assert.InDelta(t, 1, value(t, reg, "primus_train_running", nil), 0)
	assert.True(t, math.IsNaN(value(t, reg, "primus_train_mfu_ratio", nil)), "not known yet")
	assert.True(t, math.IsNaN(value(t, reg, "primus_checkpoint_timestamp_seconds", nil)), "none yet")
	assert.InDelta(t, 4, value(t, reg, "primus_train_step", nil), 0)
	valid := 2.25
	train.StepDone(backend.Step{Step: 5, Loss: 3, Tokens: 100, Duration: time.Second, ValidLoss: &valid})
	train.StepDone(backend.Step{Step: 6, Loss: 2.5, LR: 1e-3, GradNorm: 0.5, Tokens: 100, TokensPerSecond: 50, Duration: 2 * time.Second})
	for i := range 2 {
		sent := []backend.Traffic{{Op: "all_reduce", Calls: 1, Bytes: int64(100 * (i + 1)), Time: time.Duration(i+1) * time.Second}}
		train.StepDone(backend.Step{Step: 6, Loss: 2.5, LR: 1e-3, GradNorm: 0.5, TokensPerSecond: 50, Duration: 2 * time.Second,
			Ranks: &backend.RankTimes{Computed: []time.Duration{time.Second, 3 * time.Second}, Waited: time.Second / 2, Traffic: sent}})
	}
	train.StepDone(backend.Step{Step: 6, Loss: 2.5, LR: 1e-3, GradNorm: 0.5, TokensPerSecond: 50, Duration: 2 * time.Second,
		Device: &device.Work{Commands: 4, Busy: time.Second, Queued: 2 * time.Second}})
	train.CheckpointSaved(6)
	train.PatchesApplied("setup", []string{"native.z_loss"})
	train.RunEnded(backend.Result{Err: fmt.Errorf("step 7: %w", backend.ErrNonFinite)})

	for name, want := range map[string]float64{
		"primus_train_step": 6, "primus_train_loss": 2.5, "primus_train_valid_loss": 2.25, "primus_train_learning_rate": 1e-3,
		"primus_train_grad_norm": 0.5, "primus_train_tokens_per_second": 50, "primus_train_tokens_total": 200,
		"primus_train_steps": 7, "primus_train_running": 0, "primus_train_nonfinite_total": 1, "primus_patch_applied_info": 1,
		"primus_train_flops_per_second": 500, "primus_train_mfu_ratio": 0.5, "primus_checkpoint_saves_total": 1, "primus_checkpoint_step": 6,
		"primus_train_ranks": 2, "primus_train_slowest_rank": 1, "primus_train_rank_skew_ratio": 0.5, "primus_train_wait_seconds_total": 1,
		"primus_train_device_busy_seconds_total": 1, "primus_train_device_queue_seconds_total": 2, "primus_train_device_commands_total": 4,
		"primus_collective_sent_bytes_total": 200, "primus_collective_seconds_total": 2,
	} {
		assert.InDelta(t, want, value(t, reg, name, nil), 0, name)
	}
	now := float64(time.Now().UnixNano()) / 1e9
	for _, name := range []string{"primus_train_last_step_timestamp_seconds", "primus_checkpoint_timestamp_seconds"} {
		assert.InDelta(t, now, value(t, reg, name, nil), 60, name)
	}
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == "primus_train_step_duration_seconds" {
			assert.Equal(t, uint64(5), family.GetMetric()[0].GetHistogram().GetSampleCount())
			assert.InDelta(t, 9, family.GetMetric()[0].GetHistogram().GetSampleSum(), 1e-9)
			assert.Equal(t, []string{"5", "6"}, exemplars(family.GetMetric()[0].GetHistogram()))
		}
	}
}

// exemplars returns the steps of the exemplars of a histogram, by bucket.
func exemplars(h *dto.Histogram) []string {
	var steps []string
	for _, bucket := range h.GetBucket() {
		for _, pair := range bucket.GetExemplar().GetLabel() {
			steps = append(steps, pair.GetValue())
		}
	}
	return steps
}

func TestTrainingCountsStepsThatAreNotFinite(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	train, err := metrics.NewTraining(reg, metrics.TrainingSettings{})
	require.NoError(t, err)
	defer train.Close()
	train.StepDone(backend.Step{Step: 1, Loss: math.NaN()})
	train.StepDone(backend.Step{Step: 2, Loss: 1, GradNorm: math.Inf(1)})
	train.StepDone(backend.Step{Step: 3, Loss: 1, GradNorm: 1})
	train.RunEnded(backend.Result{Err: backend.ErrInterrupted})
	assert.InDelta(t, 2, value(t, reg, "primus_train_nonfinite_total", nil), 0)
}

func TestTrainingRegistersAllOrNothing(t *testing.T) {
	reg := prometheus.NewRegistry()
	require.NoError(t, reg.Register(prometheus.NewGauge(prometheus.GaugeOpts{Name: "primus_train_tokens_total", Help: "In the way."})))
	_, err := metrics.NewTraining(reg, metrics.TrainingSettings{})
	require.Error(t, err)
	n, err := testutil.GatherAndCount(reg)
	require.NoError(t, err)
	assert.Equal(t, 1, n)
}

func TestTrainingCanBeMadeAgainAfterClose(t *testing.T) {
	reg := prometheus.NewRegistry()
	for range 2 {
		train, err := metrics.NewTraining(reg, metrics.TrainingSettings{})
		require.NoError(t, err)
		train.Close()
		train.Close()
	}
}

// A Python framework reports operations and memory for a device.
func TestTrainingOfAFramework(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m, err := metrics.NewTraining(reg, metrics.TrainingSettings{PeakFLOPS: 4e15})
	require.NoError(t, err)
	defer m.Close()
	m.RunStarted(backend.Run{Name: "r", Devices: 8, FirstStep: 1, Steps: 2})
	m.StepDone(backend.Step{Step: 1, TFLOPSPerDevice: 250, MemoryBytes: 1 << 30})
	assert.InDelta(t, 2e15, value(t, reg, "primus_train_flops_per_second", nil), 1)
	assert.InDelta(t, 0.5, value(t, reg, "primus_train_mfu_ratio", nil), 1e-9)
	assert.InDelta(t, 1<<30, value(t, reg, "primus_train_device_memory_bytes", nil), 0)
}
