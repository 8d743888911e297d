package opstest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// Subject is an impl that a Workload calls.
type Subject struct {
	Impl opregistry.Impl
	// Forward is the impl whose saved state Impl reads; nil means the state that the op's
	// documentation defines.
	Forward *opregistry.Impl
}

// Workload is a case of an op that is called again and again on the same
// operands. It serves one caller at a time.
type Workload struct {
	// Case is the dtype, followed by what is special about the call.
	Case string
	// Bytes is the size of all operands.
	Bytes int

	run     func(*opregistry.Exec) error
	last    *tensor.Tensor // the last element of the largest operand that is only read; nil for none
	guards  *Stage
	written []opregistry.Operand
	updated []original
}

// original keeps the first content of an operand that a call updates.
type original struct{ operand, content *tensor.Tensor }

// Largest returns one workload for each subject, all of the case with the most bytes that every
// subject serves, with operands of storage dtype d. It uses a case with strided operands only when
// there is no other. It returns nil when no case is served, and an error when a subject fails in
// one.
func (k Kit) Largest(d tensor.DType, subjects ...Subject) ([]*Workload, error) {
	return k.workloads(d, subjects, func(a, b int) int { return b - a })
}

// Smallest is Largest for the case with the fewest bytes that writes an element.
func (k Kit) Smallest(d tensor.DType, subjects ...Subject) ([]*Workload, error) {
	return k.workloads(d, subjects, func(a, b int) int { return a - b })
}

func (k Kit) workloads(d tensor.DType, subjects []Subject, order func(a, b int) int) ([]*Workload, error) {
	if len(subjects) == 0 {
		return nil, fmt.Errorf("opstest: got no subject, want at least one")
	}
	op := subjects[0].Impl.Op
	for _, s := range subjects {
		if _, err := k.comparison(s.Impl, opregistry.Impl{Op: op}); err != nil {
			return nil, err
		}
	}
	return k.Suite(op).workloads(d, subjects, order)
}

func (s *Suite) workloads(d tensor.DType, subjects []Subject, order func(a, b int) int) (found []*Workload, err error) {
	t := &record{name: s.op.Name()}
	defer func() {
		switch cause := recover(); {
		case cause == any(ended{t}):
			found, err = nil, fmt.Errorf("opstest: op %q: %s", s.op.Name(), t.failures[len(t.failures)-1].Reason)
		case cause != nil:
			panic(cause)
		}
	}()
	for _, c := range s.bySize(t, d, order) {
		found, err = nil, nil
		for _, subject := range subjects {
			w, err := s.workload(t, d, c, subject)
			if err != nil {
				return nil, fmt.Errorf("opstest: op %q: impl %q: case %v/%s: %w", s.op.Name(), subject.Impl.ID, d, c.Name, err)
			}
			if w == nil {
				break
			}
			found = append(found, w)
		}
		if len(found) == len(subjects) {
			return found, nil
		}
	}
	return nil, nil
}

// bySize returns the cases that write an element, ordered by their bytes; those with strided
// operands come last.
func (s *Suite) bySize(t T, d tensor.DType, order func(a, b int) int) []untypedCase {
	type sized struct {
		untypedCase
		bytes   int
		strided int
	}
	var all []sized
	r := &runner{Suite: s}
	for _, c := range s.cases(d) {
		operands := r.stage(t, c, setting{}).operands
		writes := slices.ContainsFunc(operands, func(o opregistry.Operand) bool {
			return o.Access != opregistry.AccessRead && o.Tensor.NumElements() > 0
		})
		if !writes {
			continue
		}
		strided := 1
		if contiguous(operands) {
			strided = 0
		}
		all = append(all, sized{c, size(operands), strided})
	}
	slices.SortStableFunc(all, func(a, b sized) int { return cmp.Or(a.strided-b.strided, order(a.bytes, b.bytes)) })
	cases := make([]untypedCase, len(all))
	for i, c := range all {
		cases[i] = c.untypedCase
	}
	return cases
}

// workload returns a case whose operands are ready, or nil when the subject declines it.
func (s *Suite) workload(t T, d tensor.DType, c untypedCase, subject Subject) (*Workload, error) {
	r := &runner{
		Suite: s, cfg: &config{forward: subject.Forward}, impl: function(t, s.op, subject.Impl),
		serial: opregistry.NewExec(nil, 0),
	}
	call, err := r.ready(t, c, setting{})
	if errors.Is(err, opregistry.ErrUnsupported) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	w := &Workload{
		Case: d.String() + "/" + c.Name, Bytes: size(call.operands), guards: call.stage,
		run: func(x *opregistry.Exec) error { return r.guard(x, call.args) },
	}
	if largest := call.largestRead(); largest != nil && largest.NumElements() > 0 {
		at := largest.Offset()
		for i, n := range largest.Shape() {
			at += (n - 1) * largest.Strides()[i]
		}
		if w.last, err = largest.AsStrided([]int{1}, []int{1}, at); err != nil {
			return nil, err
		}
	}
	for _, o := range call.operands {
		if o.Access != opregistry.AccessRead {
			w.written = append(w.written, o)
		}
	}
	for _, o := range call.args.Updated() {
		content := tensortest.Random(t, 0, o.Tensor.DType(), o.Tensor.Shape()...)
		if err := content.CopyFrom(o.Tensor); err != nil {
			return nil, err
		}
		w.updated = append(w.updated, original{o.Tensor, content})
	}
	_, err = w.Run(r.serial)
	if errors.Is(err, opregistry.ErrUnsupported) {
		return nil, nil
	}
	return w, err
}

// Run restores the first content of the operands, calls the impl, and returns how long the call
// took.
func (w *Workload) Run(x *opregistry.Exec) (time.Duration, error) {
	for _, o := range w.updated {
		if err := o.operand.CopyFrom(o.content); err != nil {
			return 0, err
		}
	}
	begin := time.Now()
	err := w.run(x)
	return time.Since(begin), err
}

// Check compares the results of the last Run with those of another workload of the same case. It
// returns an error when they differ by more than tol, or when memory outside of the operands was
// written to.
func (w *Workload) Check(want *Workload, tol func(tensor.DType) tensor.Tolerance) error {
	for i, o := range w.written {
		diff, err := tensor.Compare(want.written[i].Tensor.Float64s(), o.Tensor, tol(o.Tensor.DType()))
		switch {
		case err != nil:
			return err
		case diff.Beyond > 0:
			return fmt.Errorf("operand %q differs in %d of %d elements: element %d: %v", o.Name, diff.Beyond, diff.Elements, diff.First.Index, diff.First)
		}
	}
	r := &record{}
	w.guards.intact(r)
	if len(r.failures) > 0 {
		return fmt.Errorf("%s", r.failures[0].Reason)
	}
	return nil
}

func size(operands []opregistry.Operand) int {
	n := 0
	for _, o := range operands {
		n += o.Tensor.NumElements() * o.Tensor.DType().Size()
	}
	return n
}
