package check

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/internal/opbench"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/loss"
	"github.com/primus-fl/primus/ops/softmax"
	"github.com/primus-fl/primus/tensor"
)

// Size is how an op does in a call of a size that models have.
type Size struct {
	Model  string       `json:"model"` // such as 8B
	Shape  string       `json:"shape"`
	DType  tensor.DType `json:"dtype"`
	Result string       `json:"result"`           // right, wrong, declined or not compared
	Reason string       `json:"reason,omitempty"` // of a result other than right

	// Time is that of a call, in microseconds, and BaselineTime that of the impl beside it; 0 where
	// the call is not served.
	Time         float64 `json:"time_us"`
	Baseline     string  `json:"baseline,omitempty"`
	BaselineTime float64 `json:"baseline_us"`

	GFLOPS    float64       `json:"gflops"` // 0 where memory is the bound
	GBPerS    float64       `json:"gb_per_s"`
	Bound     opbench.Bound `json:"bound"`
	PeakShare float64       `json:"peak_share"` // of what the machine reaches at the bound, 0 if that is not known
}

// The results of a Size.
const (
	Right       = "right"
	Wrong       = "wrong"
	Declined    = "declined"
	NotCompared = "not compared"
)

// modelSize has the lengths of a class of models on which the calls of its ops depend.
type modelSize struct {
	name                                    string
	hidden, ffn, heads, groups, head, vocab int
}

// modelSizes are those of the Llama 3 models.
func modelSizes() []modelSize {
	return []modelSize{
		{name: "1B", hidden: 2048, ffn: 8192, heads: 32, groups: 8, head: 64, vocab: 128256},
		{name: "8B", hidden: 4096, ffn: 14336, heads: 32, groups: 8, head: 128, vocab: 128256},
		{name: "70B", hidden: 8192, ffn: 28672, heads: 64, groups: 8, head: 128, vocab: 128256},
	}
}

// The lengths of sequences, and how many tokens a call has at most.
const (
	sequence      = 4096
	attended      = 512 // tokens of an attention call
	multiplied    = 64  // rows of a product
	sizedElements = 1 << 22
)

// longCall is how long a call of one size takes at which a larger one is not made.
const longCall = 200 * time.Millisecond

// sizedFor makes the case of an op for a model; ok is false for an op that has none.
func (z modelSize) sizedFor(m *opbench.Maker, op string) (work opbench.Case, ok bool, err error) {
	of := func(ops []opregistry.Handle) bool {
		return slices.ContainsFunc(ops, func(h opregistry.Handle) bool { return h.Name() == op })
	}
	cols := z.hidden
	switch {
	case op == gemm.GenericGemm.Name():
		work, err = m.GEMM(multiplied, z.hidden, z.hidden, opbench.Forward)
		return work, true, err
	case op == attention.FusedAttnFwd.Name():
		work, _, err = m.Attention(1, attended, z.heads, z.groups, z.head, attention.CausalMask, nil)
		return work, true, err
	case op == attention.FusedAttnBwd.Name():
		_, work, err = m.Attention(1, attended, z.heads, z.groups, z.head, attention.CausalMask, nil)
		return work, true, err
	case !slices.Contains(opbench.Ops(), op):
		return work, false, nil
	case of(loss.Ops()):
		cols = z.vocab
	case of(activation.Ops()):
		cols = z.ffn
	case of(softmax.Ops()):
		cols = sequence
	}
	work, err = m.Op(op, min(sequence, sizedElements/cols), cols)
	return work, true, err
}

// sizes calls the op at the sizes of models, beside the baseline, with which it compares results.
func (c *checker) sizes(snap *opregistry.Snapshot, exec *opregistry.Exec) error {
	var memory device.Backend = cpu.New()
	if c.backend != nil {
		memory = c.backend
	}
	bench := opbench.Bench{Device: memory, Exec: exec, Snap: snap, Settings: opbench.Settings{Repeat: 10, Budget: 100 * time.Millisecond}}
	for _, d := range c.found.servedDTypes() {
		if d != tensor.F32 && d != tensor.BF16 {
			continue
		}
		var took time.Duration // of a call of the last model
		for _, z := range modelSizes() {
			c.step("%s in %v", z.name, d)
			found := Size{Model: z.name, DType: d}
			slow := took > longCall
			figures, err := bench.Measure(context.Background(), d, func(m *opbench.Maker) ([]opbench.Case, error) {
				work, ok, err := z.sizedFor(m, c.name.Op)
				if !ok || err != nil {
					return nil, err
				}
				found.Shape = work.Shape
				if slow {
					found.Result, found.Reason = NotCompared, fmt.Sprintf("a call of the size before took %v", took.Round(time.Millisecond))
					return nil, nil
				}
				found.Result, found.Reason, took = c.compare(work, snap, exec)
				return []opbench.Case{work}, nil
			})
			if err != nil {
				return err
			}
			if found.Shape == "" {
				return nil // the op has no case
			}
			for _, f := range figures {
				switch {
				case f.Time == nil:
				case f.Impl == c.name.ID:
					found.Time, found.GFLOPS, found.GBPerS, found.Bound, found.PeakShare = 1e3*f.Time.Median, f.GFLOPS, f.GBPerS, f.Bound, f.PeakShare
				default:
					found.Baseline, found.BaselineTime = f.Impl, 1e3*f.Time.Median
				}
			}
			if found.Result == Wrong {
				c.found.Faults = append(c.found.Faults, fmt.Sprintf("%v/%s, as %s models have it: %s", d, found.Shape, z.name, found.Reason))
			}
			c.found.Sizes = append(c.found.Sizes, found)
		}
	}
	return nil
}

// compare makes the call of a case on the impl and on the baseline, and compares what they write;
// then again at the same addresses after one element has changed, as no benchmark does.
func (c *checker) compare(work opbench.Case, snap *opregistry.Snapshot, exec *opregistry.Exec) (result, reason string, took time.Duration) {
	result, reason, took = c.compareOnce(work, snap, exec)
	if result != Right {
		return result, reason, took
	}
	if err := change(work.Call.Operands()); err != nil {
		return NotCompared, err.Error(), took
	}
	if result, reason, _ = c.compareOnce(work, snap, exec); result == Wrong {
		reason = "in the second call at the same addresses, with an element that is another: " + reason
	}
	return result, reason, took
}

// change gives the largest operand of numbers that is only read another element, and fills those
// that are only written with NaN.
func change(operands []opregistry.Operand) error {
	var largest *tensor.Tensor
	for _, o := range operands {
		x := o.Tensor
		switch {
		case !x.DType().IsFloat() || x.NumElements() == 0:
		case o.Access == opregistry.AccessWrite:
			v := make([]float64, x.NumElements())
			for i := range v {
				v[i] = math.NaN()
			}
			if err := x.SetFloat64s(v); err != nil {
				return err
			}
		case o.Access == opregistry.AccessRead && x.DType().Size() > 1 && (largest == nil || x.NumElements() > largest.NumElements()):
			largest = x
		}
	}
	if largest == nil {
		return nil
	}
	v := largest.Float64s()
	i := rand.IntN(len(v))
	v[i] = 1 - v[i]
	return largest.SetFloat64s(v)
}

// compareOnce makes the call of a case on the impl and on the baseline, and compares what they
// write. It also returns how long the call of the impl took.
func (c *checker) compareOnce(work opbench.Case, snap *opregistry.Snapshot, exec *opregistry.Exec) (result, reason string, took time.Duration) {
	op, _ := snap.Index(c.name.Op)
	var mine, other *opregistry.Entry
	for i := range snap.Impls(op) {
		if e := &snap.Impls(op)[i]; e.ID == c.name.ID {
			mine = e
		} else {
			other = e
		}
	}
	var written []opregistry.Operand
	for _, o := range work.Call.Operands() {
		if o.Access != opregistry.AccessRead {
			written = append(written, o)
		}
	}
	before := contents(written)
	call := func(e *opregistry.Entry) (err error) {
		defer func() {
			if cause := recover(); cause != nil {
				err = fmt.Errorf("panic: %v", cause)
			}
		}()
		side := work.Side(opbench.Elapsed(), snap, e, exec)
		if side.Err == nil && side.Before != nil {
			side.Err = side.Before()
		}
		for i, o := range written { // the other impl has updated them
			side.Err = errors.Join(side.Err, o.Tensor.SetFloat64s(before[i]))
		}
		if side.Err == nil {
			took, side.Err = side.Time(1)
		}
		return side.Err
	}
	var want [][]float64
	without := "no impl is measured beside it"
	if other != nil {
		if err := call(other); err != nil {
			without = other.ID + ": " + err.Error()
		} else {
			want = contents(written)
		}
	}
	switch err := call(mine); {
	case errors.Is(err, opregistry.ErrUnsupported):
		return Declined, err.Error(), took
	case err != nil:
		return Wrong, err.Error(), took
	case want == nil:
		return NotCompared, without, took
	}
	for i, o := range written {
		if reason := differs(work.Op, o, want[i]); reason != "" {
			return Wrong, fmt.Sprintf("%s: %s of %s", o.Name, reason, other.ID), took
		}
	}
	return Right, "", took
}

func contents(operands []opregistry.Operand) [][]float64 {
	all := make([][]float64, len(operands))
	for i, o := range operands {
		all[i] = o.Tensor.Float64s()
	}
	return all
}

// usualTerms is how many terms the sums have that the tolerances of ops are for.
const usualTerms = 512

// differs says how far a result is from another one, if it is farther than the tolerance of the op
// allows for sums as long as the axes of the operand; "" if it is not.
func differs(op opregistry.Handle, o opregistry.Operand, want []float64) string {
	if !o.Tensor.DType().IsFloat() {
		return "" // an index or a flag may have several right values
	}
	tol := op.Tolerance().Of(o.Tensor.DType())
	longer := max(1, float64(max(o.Tensor.Shape().Cols(), o.Tensor.Shape().Rows()))/usualTerms)
	tol.Abs, tol.Rel, tol.ULP = longer*tol.Abs, longer*tol.Rel, tol.ULP+1
	found, err := tensor.Compare(want, o.Tensor, tol)
	switch {
	case err != nil:
		return err.Error()
	case found.Beyond == 0:
		return ""
	}
	return fmt.Sprintf("%d of %d elements differ, the first at %d: %v", found.Beyond, found.Elements, found.First.Index, found.First)
}
