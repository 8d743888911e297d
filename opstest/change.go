package opstest

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"reflect"
	"slices"
	"strings"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

const (
	changedCases   = 2 // of a dtype, for each argument
	squareCases    = 12
	square         = 16   // length of axes
	largeInt       = 1000 // is beyond what a kernel that was only tried has met
	equalizedPairs = 12   // of a case
	longListCases  = 2
	longList       = 2051 // tensors in a list
)

// change gives one argument at a time another value with which the call is valid, in a few cases
// whose right results depend on that value.
func (r *runner) change(t T, served []untypedCase, cases int) {
	t.Helper()
	if cases == 0 {
		return
	}
	found, foundSlow := map[string]int{}, map[string]int{}
	slow := slices.ContainsFunc(r.op.Params(), isNumber) && slices.ContainsFunc(r.op.Params(), isCount)
	for i := range spread(len(served)) {
		r.changeOne(t, served[i], setting{}, cases, found)
		if slow {
			r.changeOne(t, served[i], setting{change: r.slowly}, cases, foundSlow)
		}
	}
	flags := slices.ContainsFunc(r.op.Params(), func(p opregistry.Param) bool {
		return p.Sort == opregistry.SortInt && (p.Values() != nil || p.Type.Kind() == reflect.Bool)
	})
	for _, c := range r.longest(served, squareCases) {
		if flags {
			for _, axis := range r.equalized(c) {
				r.changeOne(t, c, setting{axis: axis, limit: muchStretched}, cases, found)
			}
		}
		for _, axis := range []func(int) int{squared, func(int) int { return square }} {
			r.changeOne(t, c, setting{axis: axis, limit: muchStretched}, cases, found)
		}
	}
}

// equalized gives two neighbouring axes of an operand at a time the same length, so that a flag
// which says which of them is which may have either value, although the others cannot be as long.
func (r *runner) equalized(c untypedCase) (all []func(int) int) {
	call, ok := r.made(c, setting{})
	if !ok {
		return nil
	}
	tried := map[[2]int]bool{}
	for _, o := range call.operands {
		shape := o.Tensor.Shape()
		for i := range max(len(shape)-1, 0) {
			for _, pair := range [][2]int{{shape[i], shape[i+1]}, {shape[i+1], shape[i]}} {
				if pair[0] == pair[1] || pair[1] < 2 || tried[pair] || len(all) == equalizedPairs {
					continue
				}
				tried[pair] = true
				all = append(all, func(n int) int {
					if n == pair[0] {
						return pair[1]
					}
					return n
				})
			}
		}
	}
	return all
}

// squared gives all axes but those of one element the same length, so that operands may be read the
// other way round.
func squared(n int) int {
	if n > 1 {
		return square
	}
	return n
}

// changeOne changes arguments of a case without NaN and infinities, which were changed in fewer
// than limit cases.
func (r *runner) changeOne(t T, c untypedCase, with setting, limit int, found map[string]int) {
	t.Helper()
	prefix := ""
	if with.axis != nil {
		prefix = "square/"
	}
	before := with.change
	if before == nil {
		before = func(_ tensortest.TB, _ *Stage, a opregistry.Call) opregistry.Call { return a }
	} else {
		prefix = "slowly/"
	}
	with.change = before
	usual, ok := r.made(c, with)
	if !ok || slices.ContainsFunc(usual.operands, special) || !r.computes(usual, with) {
		return
	}
	for _, p := range r.op.Params() {
		if prefix == "slowly/" && !isCount(p) {
			continue
		}
		for _, v := range otherValues(usual.args, p) {
			name := fmt.Sprintf("%s=%v", p.Name, v)
			if !v.IsValid() || v.Kind() == reflect.Pointer {
				name = p.Name + "=none"
			}
			key := name
			if isCount(p) {
				key = p.Name
				if v.CanInt() && v.Int() >= largeInt {
					key += fmt.Sprint(" of bits: ", bits.Len64(uint64(v.Int())))
				}
			}
			if found[key] >= limit {
				continue
			}
			with.change = func(t tensortest.TB, s *Stage, a opregistry.Call) opregistry.Call {
				clone, args := before(t, s, a).Clone()
				args.FieldByIndex(p.Path).Set(v)
				return clone
			}
			if other, ok := r.made(c, with); ok && r.computes(other, with) && usual.differs(other) {
				found[key]++
				r.varied(t, prefix+name, c, with)
			}
		}
	}
}

// isCount reports whether an argument is a whole number that does not stand for a name.
func isCount(p opregistry.Param) bool {
	return p.Sort == opregistry.SortInt && p.Values() == nil && p.Type != nil && p.Type.Kind() != reflect.Bool
}

// slowly returns a call whose numbers that must be less than 1 are just below it, if it has some: a
// power of them, as in the moments of an optimizer, is not yet 0 after many steps.
func (r *runner) slowly(t tensortest.TB, _ *Stage, a opregistry.Call) opregistry.Call {
	t.Helper()
	clone, args := a.Clone()
	found := false
	for _, p := range r.op.Params() {
		if !isNumber(p) {
			continue
		}
		v := args.FieldByIndex(p.Path)
		old := v.Float()
		v.SetFloat(1)
		ends := clone.Validate() != nil
		v.SetFloat(1 - 0x1p-12)
		if ends = ends && clone.Validate() == nil; !ends {
			v.SetFloat(old)
		}
		found = found || ends
	}
	if !found {
		t.Fatalf("opstest: no number must be less than 1")
	}
	return clone
}

// special reports whether an operand that is read has NaN or infinities.
func special(o opregistry.Operand) bool {
	return o.Access != opregistry.AccessWrite && slices.ContainsFunc(o.Tensor.Float64s(), func(v float64) bool { return math.IsNaN(v - v) })
}

// computes lets the oracle compute a call outside of a test; it is false when the oracle cannot.
func (r *runner) computes(call *staged, with setting) bool { return r.wanted(call, with) == nil }

// differs reports whether two calls have written different results.
func (call *staged) differs(other *staged) bool {
	if len(call.operands) != len(other.operands) {
		return true
	}
	for i, o := range call.operands {
		if o.Access != opregistry.AccessRead && !bytes.Equal(tensortest.Bytes(o.Tensor), tensortest.Bytes(other.operands[i].Tensor)) {
			return true
		}
	}
	return false
}

// otherValues returns values of an argument other than that of a call. The call need not be valid
// with them.
func otherValues(c opregistry.Call, p opregistry.Param) []reflect.Value {
	if len(p.Path) == 0 {
		return nil
	}
	clone, args := c.Clone()
	v := args.FieldByIndex(p.Path)
	given := v.Interface()
	var tried []reflect.Value
	try := func(set func()) {
		set()
		if now := v.Interface(); !reflect.DeepEqual(now, given) && clone.Validate() == nil {
			tried = append(tried, reflect.ValueOf(now))
		}
		v.Set(reflect.ValueOf(given))
	}
	switch {
	case p.Sort == opregistry.SortTensor && p.Given != "" && p.Access == "read":
		try(v.SetZero)
	case p.Sort == opregistry.SortFloat && v.CanFloat():
		for _, f := range []float64{v.Float() + 0.25, v.Float() / 2} {
			try(func() { v.SetFloat(f) })
		}
	case p.Sort == opregistry.SortFloat:
		for _, f := range []float32{0.75, 0.5} {
			try(func() {
				if other := reflect.ValueOf(opregistry.Float(f)); other.Type().AssignableTo(v.Type()) {
					v.Set(other)
				}
			})
		}
		try(v.SetZero)
	case p.Sort != opregistry.SortInt:
	case v.Kind() == reflect.Bool:
		try(func() { v.SetBool(!v.Bool()) })
	case p.Values() != nil:
		for _, n := range slices.Sorted(maps.Keys(p.Values())) {
			try(func() { setInt(v, n) })
		}
	case v.CanInt() || v.CanUint():
		for _, n := range []int{1, -1, 2, -2, 4, largeInt, 1 << 14, 1 << 20, 1 << 33} {
			try(func() { addInt(v, n) })
		}
	default:
		try(v.SetZero)
	}
	return tried
}

func setInt(v reflect.Value, n int) {
	if v.CanUint() {
		v.SetUint(uint64(n))
	} else if v.CanInt() {
		v.SetInt(int64(n))
	}
}

func addInt(v reflect.Value, n int) {
	if v.CanUint() {
		v.SetUint(v.Uint() + uint64(n))
	} else {
		v.SetInt(v.Int() + int64(n))
	}
}

// lengthen makes the lists of some cases, those with the smallest tensors, as long as those of
// models.
func (r *runner) lengthen(t T, served []untypedCase) {
	t.Helper()
	if !slices.ContainsFunc(r.op.Params(), isList) {
		return
	}
	type list struct {
		untypedCase
		given string // names of operands
		size  int
	}
	var all []list
	for _, c := range served {
		call, ok := r.made(c, setting{})
		if !ok || len(call.operands) == 0 {
			continue
		}
		l := list{untypedCase: c, size: size(call.operands)}
		for _, o := range call.operands {
			if name, _, _ := strings.Cut(o.Name, "["); !strings.HasSuffix(l.given, name+" ") {
				l.given += name + " "
			}
		}
		if l.size > 0 {
			all = append(all, l)
		}
	}
	slices.SortStableFunc(all, func(a, b list) int { return a.size - b.size })
	with := setting{change: r.longer}
	smallest := map[string]untypedCase{} // by the operands that are given
	for _, l := range all {
		if _, found := smallest[l.given]; found {
			continue
		}
		if longer, ok := r.made(l.untypedCase, with); ok && size(longer.operands) < maxStretched {
			smallest[l.given] = l.untypedCase
		}
	}
	for i, given := range slices.SortedFunc(maps.Keys(smallest), func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) }) {
		if i == longListCases {
			break
		}
		r.varied(t, fmt.Sprintf("list=%d", longList), smallest[given], with)
	}
}

func isList(p opregistry.Param) bool {
	return len(p.Path) > 0 && (p.Sort == opregistry.SortTensors || p.Sort == opregistry.SortLists)
}

// longer returns a call whose lists have copies of their tensors, each with its elements in another
// order, and whose other operands have as many elements more.
func (r *runner) longer(t tensortest.TB, s *Stage, a opregistry.Call) opregistry.Call {
	t.Helper()
	clone, args := a.Clone()
	n := 0 // tensors in the longest list
	copies := map[*tensor.Tensor][]*tensor.Tensor{}
	extended := func(list []*tensor.Tensor) []*tensor.Tensor {
		if len(list) == 0 {
			return list
		}
		all := slices.Clone(list)
		for i := len(list); i < longList; i++ {
			x, turn := list[i%len(list)], i/len(list)
			for x != nil && len(copies[x]) < turn {
				copies[x] = append(copies[x], s.rotated(x, len(copies[x])+1))
			}
			if x != nil {
				x = copies[x][turn-1]
			}
			all = append(all, x)
		}
		return all
	}
	for _, p := range r.op.Params() {
		if !isList(p) {
			continue
		}
		switch v := args.FieldByIndex(p.Path); list := v.Interface().(type) {
		case []*tensor.Tensor:
			n = max(n, len(list))
			v.Set(reflect.ValueOf(extended(list)))
		case [][]*tensor.Tensor:
			lists := slices.Clone(list)
			for i := range lists {
				n = max(n, len(lists[i]))
				lists[i] = extended(lists[i])
			}
			v.Set(reflect.ValueOf(lists))
		}
	}
	if clone.Validate() == nil {
		return clone
	}
	for _, p := range r.op.Params() {
		if p.Sort != opregistry.SortTensor || len(p.Path) == 0 {
			continue
		}
		v := args.FieldByIndex(p.Path)
		if x, ok := v.Interface().(*tensor.Tensor); ok && x != nil && len(x.Shape()) == 1 && x.NumElements() == n {
			y := s.Out(Dense, x.DType(), longList)
			values := x.Float64s()
			for len(values) < longList {
				values = append(values, values[len(values)-n])
			}
			s.Fill(y, values)
			v.Set(reflect.ValueOf(y))
		}
	}
	return clone
}

// rotated returns a guarded copy of a tensor whose elements begin with a later one.
func (s *Stage) rotated(x *tensor.Tensor, by int) *tensor.Tensor {
	s.T.Helper()
	y, intact := s.place.Guarded(s.T, x.DType(), x.Shape(), x.Strides())
	s.guards = append(s.guards, intact)
	if err := y.CopyFrom(x); err != nil {
		s.T.Fatalf("opstest: %v", err)
	}
	if n := x.NumElements(); n > 1 && x.DType().IsFloat() && x.DType().Size() > 1 {
		v := x.Float64s()
		s.Fill(y, slices.Concat(v[by%n:], v[:by%n]))
	}
	return y
}
