package opstest

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime/debug"
	"unsafe"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// elsewhere is a place whose operands have another alignment than usual, and start as numbers.
var elsewhere = tensortest.Placement{Shift: 3, Filled: true}

// shiftedBy is a place whose operands lie some elements further.
func shiftedBy(n int) tensortest.Placement { return tensortest.Placement{Shift: n, Filled: true} }

// arena gives the operands of every stage that begins with reset the same addresses.
type arena struct {
	blocks [][]byte
	next   int
}

// reset returns a place whose operands lie where those of the last stage lay.
func (a *arena) reset() tensortest.Placement {
	a.next = 0
	return tensortest.Placement{Memory: a.take}
}

func (a *arena) take(n int) []byte {
	if a.next == len(a.blocks) {
		a.blocks = append(a.blocks, nil)
	}
	block := &a.blocks[a.next]
	a.next++
	if cap(*block) < n {
		words := make([]uint64, (n+7)/8)
		*block = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), n)
	}
	return (*block)[:n:n]
}

// dirty leaves NaN in the scratch memory that an Exec will lend.
func dirty(x *opregistry.Exec) {
	const largest = 1 << 20 // float32s
	var lent [][]float32
	for n := 16; n <= largest; n *= 2 {
		buf := x.Scratch(n)
		for i := range buf {
			buf[i] = float32(math.NaN())
		}
		lent = append(lent, buf)
	}
	for _, buf := range lent {
		x.Release(buf)
	}
}

// atPages runs a case whose operands end, or begin, at pages that must not be touched.
func (r *runner) atPages(t T, c untypedCase) {
	usual, err := r.call(t, c, r.serial, setting{})
	if err != nil {
		t.Skipf("declined: %v", err)
	}
	for _, end := range []bool{true, false} {
		p := &pages{end: end}
		err := func() (err error) {
			defer func() { err = errors.Join(err, p.release()) }()
			call, err := r.ready(t, c, setting{place: p.placement()})
			if err != nil {
				return nil
			}
			if err := p.explain(r.faulting(call.args), call.operands); err != nil {
				return err
			}
			if !r.declared {
				r.compare(t, usual, call)
			} else {
				r.same(t, usual, call, "when operands lie beside guarded pages")
			}
			return nil
		}()
		if err != nil && !errors.Is(err, opregistry.ErrUnsupported) {
			t.Errorf("opstest: %v", err)
			return
		}
	}
}

// fault is an access to memory that must not be touched.
type fault struct{ address uintptr }

func (f *fault) Error() string { return fmt.Sprintf("a fault at %#x", f.address) }

// faulting runs the impl and returns a *fault when it touches a guarded page.
func (r *runner) faulting(a opregistry.Call) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		cause := recover()
		if at, ok := cause.(interface{ Addr() uintptr }); ok {
			err = &fault{at.Addr()}
		} else if cause != nil {
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	return r.impl(r.serial, a)
}

// explain says which operand a fault lies next to.
func (p *pages) explain(err error, operands []opregistry.Operand) error {
	f, ok := errors.AsType[*fault](err)
	if !ok {
		return err
	}
	for _, o := range operands {
		if o.Tensor.NumElements() == 0 {
			continue
		}
		first := uintptr(o.Tensor.Pointer())
		last := first + uintptr(len(tensortest.Bytes(o.Tensor)))
		switch {
		case p.end && f.address >= last && f.address < last+pageSpan:
			return fmt.Errorf("the impl reads or writes %d bytes beyond the end of operand %q", f.address-last+1, o.Name)
		case !p.end && f.address < first && f.address >= first-pageSpan:
			return fmt.Errorf("the impl reads or writes %d bytes before the start of operand %q", first-f.address, o.Name)
		}
	}
	return fmt.Errorf("the impl reads or writes memory that does not belong to an operand: %w", f)
}

// setting says how the operands of a call are made.
type setting struct {
	place  tensortest.Placement
	seed   uint64                // another seed makes other values
	scaled float64               // is added to numbers among the arguments
	edit   func(float64) float64 // of an element of the largest operand that is only read
	at     func(n int) int       // says which of its n elements; nil for the last one

	// change returns the call with other arguments or operands.
	change func(tensortest.TB, *Stage, opregistry.Call) opregistry.Call
	axis   func(int) int // see Stage
	limit  int           // see Stage
	padded func(int) bool

	outline bool // see Stage

	infinite  bool // the change puts an infinity into an operand
	subnormal bool // the change makes the numbers of an operand subnormal

	magnitude float64 // of numbers that the change puts into an operand; 0 stands for the usual one
	far       bool    // some of the numbers have that magnitude, or only their differences are small

	conditioned bool // results may be as far off as those of operands that are a little off
}

// isNumber reports whether an argument is a number that is not an integer.
func isNumber(p opregistry.Param) bool {
	return p.Sort == opregistry.SortFloat && (p.Type.Kind() == reflect.Float32 || p.Type.Kind() == reflect.Float64)
}

// scaled returns the call with larger numbers among its arguments, or smaller ones if the op allows
// none, so that an impl that keeps numbers from an earlier call is wrong.
func scaled(c opregistry.Call, op opregistry.Handle, by float64) opregistry.Call {
	clone, args := c.Clone()
	for _, p := range op.Params() {
		if !isNumber(p) {
			continue
		}
		v := args.FieldByIndex(p.Path)
		old := v.Float()
		for _, f := range []float64{old + by, old / 2, old} {
			if v.SetFloat(f); clone.Validate() == nil {
				break
			}
		}
	}
	return clone
}

// changed reports whether operands or arguments are others than those that the case makes.
func (s setting) changed() bool {
	return s.edit != nil || s.change != nil || s.axis != nil || s.scaled != 0
}
