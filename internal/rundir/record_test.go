package rundir_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/rundir"
	"github.com/primus-fl/primus/internal/rundir/tensorboard"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Metrics file and trackers get the same of a step, and nothing that the file can hold is lost.
func TestViewsOfAStep(t *testing.T) {
	t.Parallel()
	ce, valid, test, aux := 2.25, 2.5, 2.75, 0.125
	s := backend.Step{
		Step: 7, Loss: 3, CrossEntropy: &ce, ValidLoss: &valid, ValidTokens: 64, ValidBytes: 100, TestLoss: &test, TestTokens: 32, AuxLoss: &aux,
		LR: 1e-3, GradNorm: 0.5, LossScale: 1024, Skipped: true, TokensPerSecond: 1e5, Duration: 250 * time.Millisecond,
		TFLOPSPerDevice: 98.5, MemoryBytes: 1 << 30,
	}
	r := rundir.RecordOf(s)
	fields := reflect.ValueOf(r)
	for i := range fields.NumField() {
		assert.False(t, fields.Field(i).IsZero(), "%s is lost", fields.Type().Field(i).Name)
	}
	line, err := json.Marshal(r)
	require.NoError(t, err)
	assert.Equal(t, `{"step":7,"loss":3,"cross_entropy":2.25,"valid_loss":2.5,"valid_tokens":64,"valid_bytes":100,"test_loss":2.75,"test_tokens":32,`+
		`"loss_scale":1024,"skipped":true,"aux_loss":0.125,"lr":0.001,"grad_norm":0.5,"tokens_per_second":100000,"step_seconds":0.25,`+
		`"tflops_per_device":98.5,"memory_bytes":1073741824}`, string(line))
	assert.Equal(t, []tensorboard.Scalar{
		{Tag: "train/loss", Value: 3}, {Tag: "train/learning_rate", Value: 1e-3}, {Tag: "train/grad_norm", Value: 0.5},
		{Tag: "train/tokens_per_second", Value: 1e5}, {Tag: "train/step_seconds", Value: 0.25}, {Tag: "train/loss_scale", Value: 1024},
		{Tag: "train/cross_entropy", Value: 2.25}, {Tag: "valid/loss", Value: 2.5}, {Tag: "test/loss", Value: 2.75},
		{Tag: "train/tflops_per_device", Value: 98.5}, {Tag: "train/memory_bytes", Value: 1 << 30},
	}, r.Scalars())
	assert.Len(t, rundir.RecordOf(backend.Step{Step: 1, Loss: 3}).Scalars(), 5)
}
