package rundir

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/internal/rundir/tensorboard"
	"github.com/primus-fl/primus/runtime/backend"
)

// Record is one line of the metrics file.
type Record struct {
	Step            int64    `json:"step"`
	Loss            float64  `json:"loss"`                    // training loss in nats per token
	CrossEntropy    *float64 `json:"cross_entropy,omitempty"` // Loss without the effect of patches; nil if no patch changes it
	ValidLoss       *float64 `json:"valid_loss,omitempty"`    // in nats per token; nil if no evaluation followed the step
	ValidTokens     int      `json:"valid_tokens,omitempty"`  // number of tokens in ValidLoss
	ValidBytes      int      `json:"valid_bytes,omitempty"`   // of the text of these tokens
	TestLoss        *float64 `json:"test_loss,omitempty"`     // in nats per token; nil if no test followed the step
	TestTokens      int      `json:"test_tokens,omitempty"`   // number of tokens in TestLoss
	LossScale       float64  `json:"loss_scale,omitempty"`    // the factor of losses in fp16, after the step
	Skipped         bool     `json:"skipped,omitempty"`       // gradients overflowed, so that the weights did not change
	AuxLoss         *float64 `json:"aux_loss,omitempty"`      // the auxiliary loss of experts; nil without one
	LR              float64  `json:"lr"`
	GradNorm        float64  `json:"grad_norm"` // before clipping
	TokensPerSecond float64  `json:"tokens_per_second"`
	StepSeconds     float64  `json:"step_seconds"`
	TFLOPSPerDevice float64  `json:"tflops_per_device,omitempty"` // as a framework reports it; 0 if it does not
	MemoryBytes     int64    `json:"memory_bytes,omitempty"`      // of a device; 0 if nothing reports it
}

// RecordOf returns the line of a step.
func RecordOf(s backend.Step) Record {
	return Record{
		Step: int64(s.Step), Loss: s.Loss, CrossEntropy: s.CrossEntropy,
		ValidLoss: s.ValidLoss, ValidTokens: s.ValidTokens, ValidBytes: s.ValidBytes, TestLoss: s.TestLoss, TestTokens: s.TestTokens,
		LossScale: s.LossScale, Skipped: s.Skipped, AuxLoss: s.AuxLoss, LR: s.LR, GradNorm: s.GradNorm,
		TokensPerSecond: s.TokensPerSecond, StepSeconds: s.Duration.Seconds(), TFLOPSPerDevice: s.TFLOPSPerDevice, MemoryBytes: s.MemoryBytes,
	}
}

// Scalars returns what TensorBoard and other trackers get of the step.
func (r Record) Scalars() []tensorboard.Scalar {
	list := []tensorboard.Scalar{
		{Tag: "train/loss", Value: r.Loss}, {Tag: "train/learning_rate", Value: r.LR}, {Tag: "train/grad_norm", Value: r.GradNorm},
		{Tag: "train/tokens_per_second", Value: r.TokensPerSecond}, {Tag: "train/step_seconds", Value: r.StepSeconds},
	}
	if r.LossScale > 0 {
		list = append(list, tensorboard.Scalar{Tag: "train/loss_scale", Value: r.LossScale})
	}
	for _, loss := range []struct {
		tag   string
		value *float64
	}{{"train/cross_entropy", r.CrossEntropy}, {"valid/loss", r.ValidLoss}, {"test/loss", r.TestLoss}} {
		if loss.value != nil {
			list = append(list, tensorboard.Scalar{Tag: loss.tag, Value: *loss.value})
		}
	}
	if r.TFLOPSPerDevice > 0 {
		list = append(list, tensorboard.Scalar{Tag: "train/tflops_per_device", Value: r.TFLOPSPerDevice})
	}
	if r.MemoryBytes > 0 {
		list = append(list, tensorboard.Scalar{Tag: "train/memory_bytes", Value: float64(r.MemoryBytes)})
	}
	return list
}

// check returns an error for numbers that JSON cannot hold.
func (r Record) check() error {
	values := []struct {
		key   string
		value float64
	}{
		{"loss", r.Loss},
		{"lr", r.LR},
		{"grad_norm", r.GradNorm},
		{"tokens_per_second", r.TokensPerSecond},
		{"step_seconds", r.StepSeconds},
		{"tflops_per_device", r.TFLOPSPerDevice},
		{"cross_entropy", orZero(r.CrossEntropy)},
		{"valid_loss", orZero(r.ValidLoss)},
		{"test_loss", orZero(r.TestLoss)},
		{"aux_loss", orZero(r.AuxLoss)},
	}
	for _, v := range values {
		if math.IsNaN(v.value) || math.IsInf(v.value, 0) {
			return fmt.Errorf("rundir: %s: step %d: given %s %v, want a finite number", MetricsName, r.Step, v.key, v.value)
		}
	}
	return nil
}

func orZero(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}
