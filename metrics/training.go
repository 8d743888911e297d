package metrics

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/runtime/backend"
	"github.com/prometheus/client_golang/prometheus"
)

// Training exports the progress of a run. It is an observer of the trainer.
type Training struct {
	reg                                                            prometheus.Registerer
	step, loss, validLoss, learningRate, gradNorm, tokensPerSecond prometheus.Gauge
	tokens                                                         prometheus.Counter
	stepDuration                                                   prometheus.Histogram
}

// NewTraining registers the metrics of training. What is not known yet is NaN. When one of the names is taken it registers
// none and returns the error of reg.
func NewTraining(reg prometheus.Registerer) (*Training, error) {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "primus_train_" + name, Help: help})
	}
	t := &Training{
		reg:             reg,
		step:            gauge("step", "Last finished step."),
		loss:            gauge("loss", "Training loss of the last step in nats a token."),
		validLoss:       gauge("valid_loss", "Last validation loss in nats a token."),
		learningRate:    gauge("learning_rate", "Learning rate of the last step."),
		gradNorm:        gauge("grad_norm", "Global gradient norm of the last step, before clipping."),
		tokensPerSecond: gauge("tokens_per_second", "Training throughput of the last step."),
		tokens:          prometheus.NewCounter(prometheus.CounterOpts{Name: "primus_train_tokens_total", Help: "Tokens trained on."}),
		stepDuration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "primus_train_step_duration_seconds", Help: "Duration of training steps.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 18), // 1 ms to 131 s
		}),
	}
	for _, g := range []prometheus.Gauge{t.loss, t.validLoss, t.learningRate, t.gradNorm, t.tokensPerSecond} {
		g.Set(math.NaN())
	}
	for i, c := range t.collectors() {
		if err := reg.Register(c); err != nil {
			for _, done := range t.collectors()[:i] {
				reg.Unregister(done)
			}
			return nil, fmt.Errorf("metrics: register training: %w", err)
		}
	}
	return t, nil
}

func (t *Training) collectors() []prometheus.Collector {
	return []prometheus.Collector{t.step, t.loss, t.validLoss, t.learningRate, t.gradNorm, t.tokensPerSecond, t.tokens, t.stepDuration}
}

// Close unregisters the metrics. Further calls do nothing.
func (t *Training) Close() {
	for _, c := range t.collectors() {
		t.reg.Unregister(c)
	}
}

// RunStarted sets the step that the run starts from.
func (t *Training) RunStarted(r backend.Run) { t.step.Set(float64(r.FirstStep - 1)) }

// StepDone takes the figures of a step.
func (t *Training) StepDone(s backend.Step) {
	t.step.Set(float64(s.Step))
	t.loss.Set(s.Loss)
	t.learningRate.Set(s.LR)
	t.gradNorm.Set(s.GradNorm)
	t.tokensPerSecond.Set(s.TokensPerSecond)
	t.tokens.Add(float64(s.Tokens))
	t.stepDuration.Observe(s.Duration.Seconds())
	if s.ValidLoss != nil {
		t.validLoss.Set(*s.ValidLoss)
	}
}

// RunEnded does nothing: the last figures stay.
func (t *Training) RunEnded(backend.Result) {}

var _ backend.Observer = (*Training)(nil)
