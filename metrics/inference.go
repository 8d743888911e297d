package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Inference exports the requests for texts of a model. It observes the service.
type Inference struct {
	set               *set
	requests, texts   *prometheus.CounterVec
	prompt, generated prometheus.Counter
	took, first, next prometheus.Histogram
}

// InferenceLoad returns how many texts are generated and how many wait. It is called at every
// scrape, on any goroutine.
type InferenceLoad func() (running, waiting int)

// NewInference registers the metrics of a model. If one of the names is taken, it registers none
// and returns the error of reg.
func NewInference(reg prometheus.Registerer, load InferenceLoad) (*Inference, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "primus_inference_" + name, Help: help})
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "primus_inference_" + name, Help: help}, labels)
	}
	histogram := func(name, help string) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "primus_inference_" + name, Help: help,
			Buckets:                     prometheus.ExponentialBuckets(0.001, 2, 18), // 1 ms to 131 s
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
		})
	}
	gauge := func(name, help string, value func() int) prometheus.GaugeFunc {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "primus_inference_" + name, Help: help}, func() float64 { return float64(value()) })
	}
	n := &Inference{
		requests:  counters("requests_total", "Requests that were answered: completions or chat_completions, with the HTTP status; 499 for a client that went away before its answer.", "endpoint", "code"),
		texts:     counters("texts_total", "Texts that ended: with stop or length, cancelled by the client, or with an error.", "finish"),
		prompt:    counter("prompt_tokens_total", "Tokens of the prompts of texts that began."),
		generated: counter("generated_tokens_total", "Tokens that were generated; its rate is the tokens per second of all texts."),
		took:      histogram("request_duration_seconds", "Time from a request to the end of its answer."),
		first:     histogram("time_to_first_token_seconds", "Time from a request to the first token of a text, with the time that it waited."),
		next:      histogram("time_per_token_seconds", "Time from a token of a text to the next one."),
	}
	running := gauge("texts_running", "Texts that are being generated.", func() int { running, _ := load(); return running })
	waiting := gauge("texts_waiting", "Texts that wait for their turn.", func() int { _, waiting := load(); return waiting })
	var err error
	n.set, err = register(reg, "inference", n.requests, n.texts, n.prompt, n.generated, n.took, n.first, n.next, running, waiting)
	if err != nil {
		return nil, err
	}
	return n, nil
}

// Answered counts a request to an endpoint that was answered with an HTTP status.
func (n *Inference) Answered(endpoint string, code int, took time.Duration) {
	n.requests.WithLabelValues(endpoint, strconv.Itoa(code)).Inc()
	n.took.Observe(took.Seconds())
}

// Began counts a text with a prompt of so many tokens.
func (n *Inference) Began(prompt int) { n.prompt.Add(float64(prompt)) }

// Token counts a token of a text, after the time since the request or since the token before.
func (n *Inference) Token(first bool, took time.Duration) {
	n.generated.Inc()
	if first {
		n.first.Observe(took.Seconds())
	} else {
		n.next.Observe(took.Seconds())
	}
}

// Ended counts the end of a text.
func (n *Inference) Ended(finish string) { n.texts.WithLabelValues(finish).Inc() }

// Close unregisters the metrics.
func (n *Inference) Close() { n.set.close() }
