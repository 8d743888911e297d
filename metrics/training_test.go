package metrics_test

import (
	"math"
	"testing"
	"time"

	"github.com/primus-fl/primus/metrics"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTraining(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	train, err := metrics.NewTraining(reg)
	require.NoError(t, err)
	defer train.Close()
	assert.True(t, math.IsNaN(value(t, reg, "primus_train_loss", nil)), "not known yet")
	assert.True(t, math.IsNaN(value(t, reg, "primus_train_valid_loss", nil)), "not known yet")

	train.RunStarted(backend.Run{FirstStep: 5, Steps: 7})
	assert.InDelta(t, 4, value(t, reg, "primus_train_step", nil), 0)
	valid := 2.25
	train.StepDone(backend.Step{Step: 5, Loss: 3, Tokens: 100, Duration: time.Second, ValidLoss: &valid})
	train.StepDone(backend.Step{Step: 6, Loss: 2.5, LR: 1e-3, GradNorm: 0.5, Tokens: 100, TokensPerSecond: 50, Duration: 2 * time.Second})
	train.RunEnded(backend.Result{})

	for name, want := range map[string]float64{
		"primus_train_step": 6, "primus_train_loss": 2.5, "primus_train_valid_loss": 2.25, "primus_train_learning_rate": 1e-3,
		"primus_train_grad_norm": 0.5, "primus_train_tokens_per_second": 50, "primus_train_tokens_total": 200,
	} {
		assert.InDelta(t, want, value(t, reg, name, nil), 0, name)
	}
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == "primus_train_step_duration_seconds" {
			assert.Equal(t, uint64(2), family.GetMetric()[0].GetHistogram().GetSampleCount())
			assert.InDelta(t, 3, family.GetMetric()[0].GetHistogram().GetSampleSum(), 1e-9)
		}
	}
}

func TestTrainingRegistersAllOrNothing(t *testing.T) {
	reg := prometheus.NewRegistry()
	require.NoError(t, reg.Register(prometheus.NewGauge(prometheus.GaugeOpts{Name: "primus_train_tokens_total", Help: "In the way."})))
	_, err := metrics.NewTraining(reg)
	require.Error(t, err)
	n, err := testutil.GatherAndCount(reg)
	require.NoError(t, err)
	assert.Equal(t, 1, n)
}

func TestTrainingCanBeMadeAgainAfterClose(t *testing.T) {
	reg := prometheus.NewRegistry()
	for range 2 {
		train, err := metrics.NewTraining(reg)
		require.NoError(t, err)
		train.Close()
		train.Close()
	}
}
