package recording

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/primus-fl/primus/internal/stats"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// Match compares the results of an impl with others. Of several operands it has the worst figures.
type Match struct {
	Equal    bool    `json:"equal"`    // all elements are equal, NaN to NaN
	Elements int     `json:"elements"` // of all operands that the call writes
	Beyond   int     `json:"beyond"`   // those beyond the tolerance of the op
	NaNs     int     `json:"nans"`     // those that are NaN in one of the results only
	MaxAbs   float64 `json:"max_abs"`
	MaxRel   float64 `json:"max_rel"`
	MaxULP   uint64  `json:"max_ulp"`
	Worst    string  `json:"worst,omitempty"` // the worst element beyond the tolerance
	// Wrong is the number of those beyond the tolerance that rounding does not explain
	// (opmanager.Rounding), in a comparison with the reference; in others it is Beyond.
	Wrong int `json:"wrong"`
}

// Verdict says what the result of a call is worth.
type Verdict string

// The verdicts.
const (
	Right    Verdict = "right"    // within the tolerance of the op from the reference, or the reference itself
	Rounding Verdict = "rounding" // beyond the tolerance, because the call magnifies rounding that much
	Wrong    Verdict = "wrong"    // neither, or the impl wrote to an operand that it may not write
	Failed   Verdict = "failed"   // there is none, because the impl failed
	Declined Verdict = "declined" // there is none, because the impl declined the call
	Unknown  Verdict = "unknown"  // the reference declined or failed
)

// Result is what one impl made of a call.
type Result struct {
	File string `json:"file"`
	Op   string `json:"op"`
	Site
	RecordedOn string          `json:"recorded_on"` // the impl that served the call, "" if it failed
	Impl       string          `json:"impl_id"`
	Kind       opregistry.Kind `json:"kind"`
	Verdict    Verdict         `json:"verdict"`
	Reason     string          `json:"reason,omitempty"`    // why the impl did not serve the call, or what it wrote to and should not have
	Recorded   *Match          `json:"recorded,omitempty"`  // against the recorded result; nil if the recorded call failed
	Reference  *Match          `json:"reference,omitempty"` // against that of the reference; nil for itself and without one
	// RecordedReference compares the recorded result with that of the reference, in each Result of a
	// call. It is nil if the recorded call failed, and without a reference.
	RecordedReference *Match        `json:"recorded_reference,omitempty"`
	RecordedVerdict   Verdict       `json:"recorded_verdict"`
	RecordedWrote     string        `json:"recorded_wrote,omitempty"` // what the impl wrote to and should not have
	Time              *stats.Spread `json:"time_ms,omitempty"`
}

// Wrong reports whether the impl failed or was wrong.
func (r *Result) Wrong() bool { return r.Verdict == Wrong || r.Verdict == Failed }

// RecordedWrong reports whether the recorded result is wrong.
func (r *Result) RecordedWrong() bool { return r.RecordedVerdict == Wrong }

// verdictOf returns the verdict of a result that was compared with that of the reference.
func verdictOf(m *Match) Verdict {
	switch {
	case m == nil:
		return Unknown
	case m.Wrong > 0:
		return Wrong
	case m.Beyond > 0:
		return Rounding
	}
	return Right
}

// recordedVerdict returns the verdict of the recorded result.
func (c *Call) recordedVerdict(m *Match) Verdict {
	switch {
	case c.Wrote != "":
		return Wrong
	case c.Failure() != "":
		return Failed
	}
	return verdictOf(m)
}

// Replay runs a call on impls of its op, each repeat times at least once, and compares the results.
// It stops when ctx ends.
func Replay(ctx context.Context, c *Call, impls []opregistry.Entry, reference *opregistry.Entry, x *opregistry.Exec, repeat int) ([]Result, error) {
	var oracle opregistry.Call
	var recorded *Match
	var rounding rounding
	known := false
	if reference != nil {
		args, err := c.Arguments()
		if err != nil {
			return nil, err
		}
		known = run(args, reference, x) == nil
		oracle = args
		if known {
			rounding = c.roundingOf(reference, x)
			if recorded, err = c.recordedMatch(oracle, rounding); err != nil {
				return nil, err
			}
		}
	}
	var results []Result
	for i := range impls {
		e := &impls[i]
		r := Result{File: c.File, Op: c.Op.Name(), Site: c.Site, RecordedOn: c.Impl(), Impl: e.ID, Kind: e.Kind, RecordedReference: recorded, RecordedVerdict: c.recordedVerdict(recorded), RecordedWrote: c.Wrote}
		var times []time.Duration
		for n := range max(1, repeat) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			args, err := c.Arguments()
			if err != nil {
				return nil, err
			}
			begin := time.Now()
			err = run(args, e, x)
			took := time.Since(begin)
			declined := errors.Is(err, opregistry.ErrUnsupported)
			if name := c.unexpectedWrite(args, declined); name != "" && (err == nil || declined) {
				r.Verdict, r.Reason = Wrong, fmt.Sprintf("it wrote to operand %q, which it may not in this call", name)
				break
			}
			if err != nil {
				if r.Verdict, r.Reason = Failed, err.Error(); declined {
					r.Verdict = Declined
				}
				break
			}
			times = append(times, took)
			if n > 0 {
				continue
			}
			if r.Recorded, err = c.matchRecorded(args); err != nil {
				return nil, err
			}
			switch {
			case reference != nil && e.ID == reference.ID:
				r.Verdict = Right
			case known:
				if r.Reference, err = match(c.Op, args, oracle, rounding); err != nil {
					return nil, err
				}
				r.Verdict = verdictOf(r.Reference)
			default:
				r.Verdict = Unknown
			}
		}
		if len(times) > 0 {
			spread := stats.SpreadOf(times)
			r.Time = &spread
		}
		results = append(results, r)
	}
	return results, nil
}

// run runs an impl and returns a panic as an error.
func run(args opregistry.Call, e *opregistry.Entry, x *opregistry.Exec) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	if err := args.Served(&e.Support); err != nil {
		return err
	}
	return args.Run(e.Run, x)
}

// rounding returns opmanager.Rounding of an operand of a call.
type rounding func(operand int, want []float64) float64

// roundingOf returns the rounding of a call that a reference serves.
func (c *Call) roundingOf(reference *opregistry.Entry, x *opregistry.Exec) rounding {
	return func(operand int, want []float64) float64 {
		before, err := c.Arguments()
		if err != nil {
			return 0
		}
		return opmanager.Rounding(before, operand, want, func(a opregistry.Call) error { return run(a, reference, x) })
	}
}

// unexpectedWrite returns the name of the first operand in args that a run changed and should not
// have changed: one that the op only reads, or any if the impl declined.
func (c *Call) unexpectedWrite(args opregistry.Call, declined bool) string {
	before, err := c.Arguments()
	if err != nil {
		return ""
	}
	operands := args.Operands()
	written := map[*tensor.Tensor]bool{}
	for _, o := range operands {
		written[o.Tensor] = written[o.Tensor] || o.Access != opregistry.AccessRead && !declined
	}
	for i, old := range before.Operands() {
		if old.Tensor == nil || written[operands[i].Tensor] {
			continue
		}
		if same, err := tensor.Compare(old.Tensor.Float64s(), operands[i].Tensor, tensor.Tolerance{}); err == nil && same.Beyond > 0 {
			return old.Name
		}
	}
	return ""
}

// results returns a function that gives an operand of args the tensor with its recorded result.
func (c *Call) results(args opregistry.Call) func(opregistry.Operand) *tensor.Tensor {
	recorded := map[string]*tensor.Tensor{}
	for _, v := range c.Views {
		recorded[v.Name] = v.after
	}
	views := map[*tensor.Tensor]string{} // the first operand that is the view names it
	for _, o := range args.Operands() {
		if _, named := views[o.Tensor]; !named {
			views[o.Tensor] = o.Name
		}
	}
	return func(o opregistry.Operand) *tensor.Tensor { return recorded[views[o.Tensor]] }
}

// matchRecorded compares the results in args with the recorded ones. It is nil if the recorded call
// failed.
func (c *Call) matchRecorded(args opregistry.Call) (*Match, error) {
	if c.Failure() != "" {
		return nil, nil
	}
	recorded := c.results(args)
	return compare(c.Op, args, nil, func(o opregistry.Operand) (got, want *tensor.Tensor) { return o.Tensor, recorded(o) })
}

// recordedMatch compares the recorded results with those in args. It is nil if the recorded call
// failed.
func (c *Call) recordedMatch(args opregistry.Call, by rounding) (*Match, error) {
	if c.Failure() != "" {
		return nil, nil
	}
	recorded := c.results(args)
	return compare(c.Op, args, by, func(o opregistry.Operand) (got, want *tensor.Tensor) { return recorded(o), o.Tensor })
}

// match compares the results of a call with those of another one of the same op.
func match(op opregistry.Handle, got, want opregistry.Call, by rounding) (*Match, error) {
	tensors := map[string]*tensor.Tensor{}
	for _, o := range want.Operands() {
		tensors[o.Name] = o.Tensor
	}
	return compare(op, got, by, func(o opregistry.Operand) (got, want *tensor.Tensor) { return o.Tensor, tensors[o.Name] })
}

// compare compares results. pair returns those of an operand that a call wrote; one that is nil is
// left out. by is nil unless the results are compared with those of the reference.
func compare(op opregistry.Handle, call opregistry.Call, by rounding, pair func(opregistry.Operand) (got, want *tensor.Tensor)) (*Match, error) {
	m := &Match{Equal: true}
	worst := 0.0
	for i, o := range call.Operands() {
		if o.Tensor == nil || o.Access == opregistry.AccessRead {
			continue
		}
		got, expected := pair(o)
		if got == nil || expected == nil {
			continue
		}
		values := expected.Float64s()
		tol := opmanager.Tolerance(op, got.DType(), values)
		d, err := tensor.Compare(values, got, tol)
		if err != nil {
			return nil, fmt.Errorf("operand %q: %w", o.Name, err)
		}
		wrong := d.Beyond
		if by != nil && d.Beyond > 0 && d.NaNs == 0 && got.DType().IsFloat() {
			tol.Abs = max(tol.Abs, by(i, values))
			rounded, err := tensor.Compare(values, got, tol)
			if err != nil {
				return nil, fmt.Errorf("operand %q: %w", o.Name, err)
			}
			wrong = rounded.Beyond
		}
		m.Wrong += wrong
		exact, err := tensor.Compare(values, got, tensor.Tolerance{})
		if err != nil {
			return nil, fmt.Errorf("operand %q: %w", o.Name, err)
		}
		m.Equal = m.Equal && exact.Beyond == 0
		m.Elements += d.Elements
		m.Beyond += d.Beyond
		m.NaNs += d.NaNs
		m.MaxAbs, m.MaxRel, m.MaxULP = max(m.MaxAbs, d.MaxAbs), max(m.MaxRel, d.MaxRel), max(m.MaxULP, d.MaxULP)
		if d.Beyond > 0 && (m.Worst == "" || d.MaxAbs > worst) {
			worst = d.MaxAbs
			m.Worst = fmt.Sprintf("operand %q, element %d: %v", o.Name, d.Worst.Index, d.Worst)
		}
	}
	return m, nil
}
