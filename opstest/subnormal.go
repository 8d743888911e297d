package opstest

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// subnormal gives operands of numbers only subnormal ones, by a power of two: each in turn, all of
// them, and half of the elements of the largest, whose results are also of those beside them. It
// looks for results that are 0 because the impl takes such numbers as 0, which it may declare. What
// the forward op has saved is left out: it may come from an exponential, which may be 0 instead.
func (r *runner) subnormal(t T, c untypedCase) {
	t.Helper()
	call, ok := r.made(c, setting{})
	if !ok || r.squares || slices.Contains(r.flushes, c.dtype) {
		return
	}
	var some []int
	largest := -1
	for _, i := range someOf(len(call.operands), specialOperands) {
		o := call.operands[i]
		if !r.takesSpecial(call, o) || r.saved(o.Name) {
			continue
		}
		some = append(some, i)
		if largest < 0 || o.Tensor.NumElements() > call.operands[largest].Tensor.NumElements() {
			largest = i
		}
	}
	every := func(int) bool { return true }
	for _, i := range some {
		r.varied(t, "subnormal_"+call.operands[i].Name, c, withSubnormals([]int{i}, every))
	}
	if len(some) == 0 {
		return
	}
	r.varied(t, "subnormal_half_of_"+call.operands[largest].Name, c, withSubnormals([]int{largest}, func(k int) bool { return bits.OnesCount(uint(k))%2 == 0 }))
	if len(some) > 1 {
		r.varied(t, "subnormal_operands", c, withSubnormals(some, every))
	}
}

// withSubnormals is a setting in which elements of some operands are subnormal.
func withSubnormals(operands []int, chosen func(element int) bool) setting {
	return setting{subnormal: true, change: func(_ tensortest.TB, s *Stage, a opregistry.Call) opregistry.Call {
		for _, i := range operands {
			x := a.Operands()[i].Tensor
			v := x.Float64s()
			largest := 0.0
			for _, e := range v {
				largest = max(largest, math.Abs(e))
			}
			_, exponent := math.Frexp(largest)
			factor := math.Ldexp(subnormals[x.DType()].normal, -exponent)
			for k := range v {
				if chosen(k) {
					v[k] *= factor
				}
			}
			s.Fill(x, v)
		}
		return a
	}}
}

// subnormals has the dtypes of which results are looked at: the smallest normal number, and a
// subnormal one that is so large that a sum in which each term has half a unit of the least one as
// its error is not 0.
var subnormals = map[tensor.DType]struct{ normal, visible float64 }{
	tensor.F64:  {0x1p-1022, 0x1p-1060},
	tensor.F32:  {0x1p-126, 0x1p-138},
	tensor.BF16: {0x1p-126, 0x1p-131},
	tensor.F16:  {0x1p-14, 0x1p-22},
}

// saved reports whether the forward op writes an operand of a backward op.
func (r *runner) saved(operand string) bool {
	return r.refresh != nil && r.cfg.oracleForward != nil && slices.ContainsFunc(r.cfg.oracleForward.Op.Params(), func(p opregistry.Param) bool {
		return strings.EqualFold(p.Name, operand) && p.Access != "read"
	})
}

// flushed says how many results of a call with subnormal numbers are 0 that are too large to be
// rounded to it, if they are more than the few that are differences of other numbers.
func (call *staged) flushed(want []float64, got *tensor.Tensor) string {
	visible := subnormals[got.DType()].visible
	if !call.subnormal || visible == 0 {
		return ""
	}
	zeros, of, largest := 0, 0, 0.0
	for i, g := range got.Float64s() {
		if w := math.Abs(want[i]); w >= visible {
			of++
			if g == 0 {
				zeros++
				largest = max(largest, w)
			}
		}
	}
	if zeros == 0 || zeros < of/4 {
		return ""
	}
	return fmt.Sprintf("%d of %d elements are 0, the largest of them is to be %.3g: the impl takes subnormal numbers as 0, which it may declare", zeros, of, largest)
}
