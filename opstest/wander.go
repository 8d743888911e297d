package opstest

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

const (
	reduced      = 32      // times as many elements as the results of a call have, at least
	wandered     = 1 << 18 // the length of an operand that is made longer
	wanderVisits = 1 << 28 // elements that are read by all calls of an impl
	wanderPlaces = 1 << 12 // of an outlier, at most
	wanderOracle = 1 << 22 // elements that are read by all calls of an oracle, if the place matters
	wanderTrials = 6       // places that must not matter for it not to matter
)

// wander lets the largest element of an operand be each of its elements in turn, in a call of an op
// whose results are few, such as the largest magnitude of a tensor: an element that is left out
// changes nothing unless it is the largest. In an operand that is made longer it is at some places.
func (r *runner) wander(t T, o magnified) {
	t.Helper()
	if o.integers || r.refresh != nil || r.values != nil {
		return
	}
	n := o.rows * o.cols
	longer := func(m int) int {
		if m == n {
			return wandered | 1
		}
		return m
	}
	r.wanderIn(t, o, setting{})
	if o.cols == n && n > 1 && r.cfg.sample == 0 && (o.dtype == tensor.F32 || o.dtype == tensor.BF16) {
		r.wanderIn(t, o, setting{axis: longer, limit: 4 * wandered})
	}
}

// wanderIn is wander in operands that are made in one way.
func (r *runner) wanderIn(t T, o magnified, with setting) {
	t.Helper()
	with.change = func(_ tensortest.TB, _ *Stage, a opregistry.Call) opregistry.Call { return a }
	with.magnitude, with.far, with.infinite = outlier, true, true
	want, ok := r.made(o.untypedCase, with)
	if !ok {
		return
	}
	x := want.operands[o.operand].Tensor
	n, results := x.NumElements(), 0
	for _, other := range want.operands {
		if other.Access != opregistry.AccessRead {
			results += other.Tensor.NumElements()
		}
	}
	if results == 0 || n < reduced*results {
		return
	}
	places, whereItMatters := min(n, wanderPlaces, wanderVisits/n), max(wanderTrials, min(128, wanderOracle/n))
	if r.cfg.sample > 0 {
		places = min(places, whereItMatters)
	}
	r.run(t, fmt.Sprintf("%v/outlier_of_%d_in_%s/%s", o.dtype, n, o.name, o.Name), func(t T) {
		got, ok := r.made(o.untypedCase, with)
		if !ok {
			return
		}
		mine, theirs := roam(t, want, o.operand), roam(t, got, o.operand)
		place, matters := 0, false
		for i := range evenly(n) {
			if place == places || matters && place >= whereItMatters {
				return
			}
			if place < wanderTrials || matters {
				before := mine.results()
				if err := errors.Join(mine.put(i), r.wanted(want, with)); err != nil {
					t.Skipf("not judged: the oracle: %v", err)
				}
				matters = matters || place > 0 && !slices.EqualFunc(before, mine.results(), slices.Equal)
			}
			err := theirs.put(i)
			if err == nil {
				err = r.guard(r.serial, got.args)
			}
			switch {
			case errors.Is(err, opregistry.ErrUnsupported):
				t.Skipf("declined: %v", err)
			case err != nil:
				t.Fatalf("opstest: the impl failed: %v", err)
			}
			if r.compare(t, want, got); t.Failed() {
				t.Fatalf("opstest: element %d of operand %q is the largest", i, o.name)
			}
			place++
		}
	})
}

// evenly yields the numbers below n in an order in which any first ones lie about as far from each
// other: steps of the golden section.
func evenly(n int) iter.Seq[int] {
	step := max(1, int(float64(n)*(math.Phi-1)))
	for n > 0 && gcd(step, n) != 1 {
		step++
	}
	return func(yield func(int) bool) {
		for i, at := 0, 0; i < n; i, at = i+1, (at+step)%n {
			if !yield(at) {
				return
			}
		}
	}
}

// roaming is a call in which an element of an operand is an outlier, now here and now there.
type roaming struct {
	x       *tensor.Tensor
	last    []int      // where the outlier is, nil at first
	value   float64    // that was there
	written []original // by the call
}

func roam(t tensortest.TB, call *staged, operand int) *roaming {
	t.Helper()
	w := &roaming{x: call.operands[operand].Tensor}
	for _, o := range call.operands {
		if o.Access != opregistry.AccessRead {
			w.written = append(w.written, original{o.Tensor, copyOf(t, o.Tensor)})
		}
	}
	return w
}

// put moves the outlier to an element, and undoes what the last call has written.
func (w *roaming) put(element int) error {
	for _, o := range w.written {
		if err := o.operand.CopyFrom(o.content); err != nil {
			return err
		}
	}
	if w.last != nil {
		w.x.Set(w.value, w.last...)
	}
	shape := w.x.Shape()
	w.last = make([]int, len(shape))
	for i := len(shape) - 1; i >= 0; i-- {
		w.last[i], element = element%shape[i], element/shape[i]
	}
	w.value = w.x.At(w.last...)
	w.x.Set(outlier, w.last...)
	return nil
}

// results returns what the call has written.
func (w *roaming) results() (all [][]float64) {
	for _, o := range w.written {
		all = append(all, o.operand.Float64s())
	}
	return all
}
