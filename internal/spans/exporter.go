package spans

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/runtime/backend"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Exporter makes spans of the steps of a run and of the calls in them.
type Exporter struct {
	provider *sdk.TracerProvider
	to       *sender
	tracer   trace.Tracer
	run      trace.Span // nil outside of a run

	mu    sync.Mutex
	first time.Time // the beginning of the first call of the step
	work  map[part]*work
}

// part is what has a span in a step.
type part struct {
	family string
	phase  oppolicy.Phase
}

func (p part) String() string {
	if p.phase == oppolicy.PhaseUnspecified {
		return p.family
	}
	return p.family + " " + p.phase.String()
}

// work is the calls of a part of a step.
type work struct {
	begin, end          time.Time
	busy                time.Duration
	calls, bytes, fails int64
	impls               map[string]bool
}

func newExporter(provider *sdk.TracerProvider, to *sender) *Exporter {
	return &Exporter{provider: provider, to: to, tracer: provider.Tracer("github.com/primus-fl/primus"), work: map[part]*work{}}
}

// Begin notes a call. It implements opmanager.Tap.
func (e *Exporter) Begin(call opmanager.TappedCall) func(opmanager.ImplInfo, error) error {
	key, bytes := part{family(call.Op), call.Phase}, call.Bytes()
	begin := time.Now()
	return func(served opmanager.ImplInfo, err error) error {
		end := time.Now()
		e.mu.Lock()
		defer e.mu.Unlock()
		w := e.work[key]
		if w == nil {
			w = &work{begin: begin, impls: map[string]bool{}}
			e.work[key] = w
		}
		if begin.Before(w.begin) {
			w.begin = begin
		}
		if e.first.IsZero() || begin.Before(e.first) {
			e.first = begin
		}
		w.end, w.busy = end, w.busy+end.Sub(begin)
		w.calls++
		w.bytes += bytes
		if err != nil {
			w.fails++
		} else {
			w.impls[served.ID] = true
		}
		return nil
	}
}

// family returns the name of the package that has the arguments of an op, such as norm, or the name
// of the op.
func family(op opregistry.Handle) string {
	return cmp.Or(path.Base(op.Args().PkgPath()), op.Name())
}

// take returns the work since the last call of take, and the beginning of its first call.
func (e *Exporter) take() (first time.Time, parts map[part]*work) {
	e.mu.Lock()
	defer e.mu.Unlock()
	first, parts = e.first, e.work
	e.first, e.work = time.Time{}, map[part]*work{}
	return first, parts
}

// RunStarted begins the span of the run.
func (e *Exporter) RunStarted(r backend.Run) {
	e.take()
	_, e.run = e.tracer.Start(context.Background(), "run", trace.WithNewRoot(), trace.WithAttributes(
		attribute.String("primus.model", r.Model), attribute.Int("primus.parameters", r.Parameters), attribute.Int("primus.first_step", r.FirstStep), attribute.Int("primus.steps", r.Steps),
	))
}

// StepDone makes the spans of a step. That of the step begins with its first call, or, if a
// framework makes the calls, as long before the end as the step took, and includes an evaluation
// after it.
func (e *Exporter) StepDone(s backend.Step) {
	first, parts := e.take()
	end := time.Now()
	if first.IsZero() {
		first = end.Add(-s.Duration)
	}
	options := []trace.SpanStartOption{trace.WithNewRoot(), trace.WithTimestamp(first), trace.WithAttributes(
		attribute.Int("primus.step", s.Step), attribute.Float64("primus.step.seconds", s.Duration.Seconds()), attribute.Float64("primus.loss", s.Loss),
		attribute.Float64("primus.grad_norm", s.GradNorm), attribute.Float64("primus.learning_rate", s.LR), attribute.Int("primus.tokens", s.Tokens),
	)}
	if e.run != nil {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: e.run.SpanContext()}))
	}
	ctx, step := e.tracer.Start(context.Background(), "step", options...)
	for _, p := range slices.SortedFunc(maps.Keys(parts), func(a, b part) int { return parts[a].begin.Compare(parts[b].begin) }) {
		w := parts[p]
		_, span := e.tracer.Start(ctx, p.String(), trace.WithTimestamp(w.begin), trace.WithAttributes(
			attribute.String("primus.family", p.family), attribute.Int64("primus.calls", w.calls), attribute.Float64("primus.seconds", w.busy.Seconds()),
			attribute.Int64("primus.bytes", w.bytes), attribute.StringSlice("primus.impls", slices.Sorted(maps.Keys(w.impls))),
		))
		if w.fails > 0 {
			span.SetStatus(codes.Error, fmt.Sprintf("%d of %d calls returned an error", w.fails, w.calls))
		}
		span.End(trace.WithTimestamp(w.end))
	}
	step.End(trace.WithTimestamp(end))
}

// RunEnded ends the span of the run.
func (e *Exporter) RunEnded(r backend.Result) {
	if e.run == nil {
		return
	}
	e.run.SetAttributes(attribute.Int("primus.last_step", r.LastStep))
	if r.Err != nil && !errors.Is(r.Err, backend.ErrInterrupted) {
		e.run.SetStatus(codes.Error, r.Err.Error())
	}
	e.run.End()
	e.run = nil
}

// maxClose is how long Close waits until the last spans are sent.
const maxClose = 5 * time.Second

// Close sends the last spans, waits for at most five seconds until that is done, and ends the
// export. It logs how many spans were dropped. A nil Exporter may be closed.
func (e *Exporter) Close() {
	if e == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxClose)
	defer cancel()
	if err := e.provider.Shutdown(ctx); err != nil && e.to.dropped.Load() == 0 {
		e.to.log.Warn(fmt.Sprintf("spans: the last spans were not sent to %s within %v: %v", e.to.where, maxClose, err))
	}
	if n := e.to.dropped.Load(); n > 0 {
		e.to.log.Warn(fmt.Sprintf("spans: %d spans were dropped because %s did not accept them", n, e.to.where))
	}
}

var (
	_ opmanager.Tap    = (*Exporter)(nil)
	_ backend.Observer = (*Exporter)(nil)
)
