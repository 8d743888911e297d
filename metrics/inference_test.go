package metrics_test

import (
	"testing"
	"time"

	"github.com/primus-fl/primus/metrics"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestInference(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	n, err := metrics.NewInference(reg, func() (running, waiting int) { return 4, 7 })
	require.NoError(t, err)
	_, err = metrics.NewInference(reg, nil)
	require.Error(t, err, "the names are taken")
	n.Answered("completions", 200, time.Second)
	n.Answered("completions", 429, time.Second)
	n.Began(5)
	n.Began(2)
	for i := range 3 {
		n.Token(i == 0, time.Millisecond)
	}
	n.Ended("length")
	for name, want := range map[string]float64{
		"prompt_tokens_total": 7, "generated_tokens_total": 3, "request_duration_seconds": 2, "time_to_first_token_seconds": 1, "time_per_token_seconds": 2,
		"texts_running": 4, "texts_waiting": 7,
	} {
		assert.InDelta(t, want, value(t, reg, "primus_inference_"+name, nil), 0, name)
	}
	assert.InDelta(t, 1, value(t, reg, "primus_inference_requests_total", map[string]string{"endpoint": "completions", "code": "429"}), 0)
	assert.InDelta(t, 1, value(t, reg, "primus_inference_texts_total", map[string]string{"finish": "length"}), 0)
	n.Close()
	families, err := reg.Gather()
	require.NoError(t, err)
	assert.Empty(t, families)
}
