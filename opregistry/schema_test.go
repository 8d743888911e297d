package opregistry_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// optional is a number as ops have them.
type optional struct{ value float32 }

func (o optional) Get() (v float32, given bool) { return o.value, false }

// Scales and Options are structs in arguments.
type Scales struct {
	Data  *tensor.Tensor `op:"0 data fp8 ?"`
	Scale *tensor.Tensor `op:"1 scale depends f32 (1) ?"`
}

type Options struct {
	Mask *tensor.Tensor `op:"0 mask read bool ?:masked"`
	Rate float64        `op:"1 rate [0,1)"`
}

// wholeArgs use every word of the notation.
type wholeArgs struct {
	X          *tensor.Tensor `op:"0 x read compute [.. cols>0]"`
	Bias       *tensor.Tensor `op:"1 bias read|write:grad =x (cols) ?"`
	Y          *tensor.Tensor `op:"2 y write|update:accumulate f32 bf16 [.. cols>0] may=x"`
	GLU        *tensor.Tensor `op:"3 glu read compute [.. 2*cols] ?"`
	Ends       *tensor.Tensor `op:"4 ends read index [rows+1] ?"`
	Any        *tensor.Tensor `op:"5 any read any ?"`
	Grad       bool           `op:"6 grad"`
	Masked     bool           `op:"7 masked"`
	Eps        float32        `op:"8 eps finite"`
	Step       int            `op:"9 step >=1"`
	Alpha      optional       `op:"10 alpha"`
	Options    `op:"11"`
	Out        Scales           `op:"13 out write"`
	Parts      []*tensor.Tensor `op:"15 parts read =x ? len=n"`
	Counts     *tensor.Tensor   `op:"16 counts read i32 (n) ?"`
	Accumulate bool             `op:"17 accumulate"`
	Outs       []Scales         `op:"- outs write"`
	Read       bool             `op:"18 scales_are_read"`
	Saved      *opregistry.Saved
}

var whole = opregistry.NewOp("whole", opregistry.Schema[wholeArgs]{
	Doc: "has all kinds of arguments", Family: "whole", Forward: true,
	Tolerance: opregistry.Arithmetic(1, 2, "a reason"),
	Check: func(c *opregistry.Check, a *wholeArgs) {
		if a.Step == 13 {
			c.Fail("step", "another one", "%d", a.Step)
		}
	},
	Access: func(a *wholeArgs, _ string, i int) opregistry.Access {
		if a.Read != (i == 1) {
			return opregistry.AccessRead
		}
		return opregistry.AccessWrite
	},
})

func of(d tensor.DType, shape ...int) *tensor.Tensor {
	x, err := tensor.FromBytes(make([]byte, tensor.Shape(shape).NumElements()*d.Size()), d, shape...)
	if err != nil {
		panic(err)
	}
	return x
}

func f32(shape ...int) *tensor.Tensor { return of(tensor.F32, shape...) }

// piece returns n elements of x from an offset on.
func piece(x *tensor.Tensor, from, n int) *tensor.Tensor {
	v, err := x.AsStrided([]int{n}, []int{1}, from)
	if err != nil {
		panic(err)
	}
	return v
}

func goodWhole() wholeArgs {
	return wholeArgs{
		X: f32(2, 3, 4), Bias: f32(4), Y: f32(2, 3, 4), GLU: f32(2, 3, 8), Ends: of(tensor.I64, 7), Any: of(tensor.Bool, 9),
		Step: 1, Out: Scales{Data: of(tensor.F8E4M3, 5), Scale: f32(1)},
		Parts: []*tensor.Tensor{f32(3), f32(2)}, Counts: of(tensor.I32, 2, 1),
		Outs:  []Scales{{Data: of(tensor.F8E5M2, 2), Scale: f32(1)}, {}},
		Saved: new(opregistry.Saved),
	}
}

func TestDescriptionIsChecked(t *testing.T) {
	good := goodWhole()
	require.NoError(t, whole.Validate(good))
	assert.Zero(t, testing.AllocsPerRun(20, func() { _ = whole.Validate(good) }))
	var nothing *tensor.Tensor
	tests := []struct {
		name string
		edit func(a *wholeArgs)
		want string // the error after the name of the op, "" for none
	}{
		{"left out", func(a *wholeArgs) {
			*a = wholeArgs{X: a.X, Y: a.Y, Step: 1, Saved: a.Saved}
		}, ""},
		{"nil", func(a *wholeArgs) { a.X = nil }, `"x": given nil, want a tensor`},
		{"dtype", func(a *wholeArgs) { a.X = of(tensor.I32, 2, 4) }, `"x": given i32[2 4] on cpu:0, want dtype f32, bf16, f16 or f64`},
		{"one of two dtypes", func(a *wholeArgs) { a.Y = of(tensor.BF16, 2, 3, 4) }, ""},
		{"none of two dtypes", func(a *wholeArgs) { a.Y = of(tensor.F16, 2, 3, 4) }, `"y": given f16[2 3 4] on cpu:0, want dtype f32 or bf16`},
		{"dtype of another", func(a *wholeArgs) { a.Bias = of(tensor.BF16, 4) }, `"bias": given bf16[4] on cpu:0, want the dtype of x, f32`},
		{"no axes", func(a *wholeArgs) { a.X = f32() }, `"x": given f32[] on cpu:0, want shape [.. cols>0]`},
		{"no columns", func(a *wholeArgs) { a.X = f32(2, 0) }, `"x": given f32[2 0] on cpu:0, want shape [.. cols>0]`},
		{"same shape", func(a *wholeArgs) { a.Y = f32(6, 4) }, `"y": given f32[6 4] on cpu:0, want the shape of x, [2 3 4]`},
		{"elements", func(a *wholeArgs) { a.Bias = f32(5) }, `"bias": given f32[5] on cpu:0, want 4 elements (cols)`},
		{"elements in any axes", func(a *wholeArgs) { a.Bias = f32(1, 4, 1) }, ""},
		{"factor", func(a *wholeArgs) { a.GLU = f32(2, 3, 4) }, `"glu": given f32[2 3 4] on cpu:0, want shape [2 3 8], as [.. 2*cols]`},
		{"leading axes", func(a *wholeArgs) { a.GLU = f32(3, 2, 8) }, `"glu": given f32[3 2 8] on cpu:0, want shape [2 3 8], as [.. 2*cols]`},
		{"sum", func(a *wholeArgs) { a.Ends = of(tensor.I32, 6) }, `"ends": given i32[6] on cpu:0, want shape [7], as [rows+1]`},
		{"given with", func(a *wholeArgs) { a.Masked = true }, `"mask": given nil, want a tensor with masked`},
		{"nil without", func(a *wholeArgs) { a.Mask = of(tensor.Bool, 1) }, `"mask": given bool[1] on cpu:0, want nil without masked`},
		{"with", func(a *wholeArgs) { a.Masked, a.Mask = true, of(tensor.Bool, 1) }, ""},
		{"not finite", func(a *wholeArgs) { a.Eps = float32(math.Inf(1)) }, `"eps": given +Inf, want a finite number`},
		{"NaN", func(a *wholeArgs) { a.Eps = float32(math.NaN()) }, `"eps": given NaN, want a finite number`},
		{"too small", func(a *wholeArgs) { a.Step = 0 }, `"step": given 0, want a number >= 1`},
		{"interval", func(a *wholeArgs) { a.Rate = 1 }, `"rate": given 1, want a number in [0, 1)`},
		{"inner operand", func(a *wholeArgs) { a.Out.Scale = f32(2) }, `"out.scale": given f32[2] on cpu:0, want 1 element (1)`},
		{"part", func(a *wholeArgs) { a.Parts[1] = nil }, `"parts[1]": given nil, want a tensor`},
		{"dtype of a part", func(a *wholeArgs) { a.Parts[1] = of(tensor.F64, 2) }, `"parts[1]": given f64[2] on cpu:0, want the dtype of x, f32`},
		{"number of parts", func(a *wholeArgs) { a.Parts = a.Parts[:1] }, `"counts": given i32[2 1] on cpu:0, want 1 element (n)`},
		{"inner operand of a list", func(a *wholeArgs) { a.Outs[1].Data = f32(3) }, `"outs[1].data": given f32[3] on cpu:0, want dtype f8e4m3 or f8e5m2`},
		{"saved", func(a *wholeArgs) { a.Saved = nil }, `"saved": given nil, want the *opregistry.Saved that forward and backward share`},
		{"check", func(a *wholeArgs) { a.Step = 13 }, `"step": given 13, want another one`},

		{"in place", func(a *wholeArgs) { a.Y = a.X }, ""},
		{"overlap in part", func(a *wholeArgs) {
			memory := f32(25)
			a.X, a.Y = piece(memory, 0, 24), piece(memory, 1, 24)
			a.GLU, a.Ends, a.Bias = nothing, nothing, nothing
		}, `"y": given a view that overlaps x in part, want the same view as x or memory apart from it`},
		{"written over what is read", func(a *wholeArgs) { a.Bias = piece(a.Y, 0, 4) }, `"y": given a view that overlaps bias, want memory apart from bias`},
		{"both read", func(a *wholeArgs) { a.Bias = piece(a.X, 0, 4) }, ""},
		{"read where it is written", func(a *wholeArgs) { a.Bias, a.Grad = piece(a.X, 0, 4), true }, `"bias": given a view that overlaps x, want memory apart from x`},
		{"written twice", func(a *wholeArgs) { a.Bias, a.Grad = piece(a.Y, 0, 4), true }, `"y": given a view that overlaps bias, want memory apart from bias`},
		{"over an inner operand", func(a *wholeArgs) { a.Out.Scale = piece(a.Y, 0, 1) }, `"out.scale": given a view that overlaps y, want memory apart from y`},
		{"over a list", func(a *wholeArgs) { a.Parts[1] = piece(a.Y, 3, 2) }, `"y": given a view that overlaps parts[1], want memory apart from parts[1]`},
		{"depends", func(a *wholeArgs) { a.Outs[0].Scale = piece(a.X, 3, 1) }, `"outs[0].scale": given a view that overlaps x, want memory apart from x`},
		{"depends on the index", func(a *wholeArgs) { a.Outs[1].Scale = piece(a.X, 3, 1) }, ""},
		{"depends on an argument", func(a *wholeArgs) { a.Outs[0].Scale, a.Read = piece(a.X, 3, 1), true }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := goodWhole()
			tt.edit(&a)
			err := whole.Validate(a)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			_, ok := errors.AsType[*opregistry.ArgError](err)
			assert.True(t, ok, "%T", err)
			require.EqualError(t, err, `op "whole": argument `+tt.want)
		})
	}
}

func TestDescriptionListsOperands(t *testing.T) {
	t.Parallel()
	a := goodWhole()
	a.Grad, a.Accumulate = true, true
	var got []string
	for _, o := range whole.Operands(a) {
		got = append(got, o.Name+" "+o.Access.String())
	}
	assert.Equal(t, []string{
		"x read", "bias write", "y update", "glu read", "ends read", "any read", "out.data write", "out.scale write",
		"parts[0] read", "parts[1] read", "counts read", "outs[0].data write", "outs[0].scale write",
	}, got)
	assert.Same(t, a.X, whole.At(&a).Lead())
	assert.Same(t, a.Saved, whole.At(&a).Saved())
}

func TestParams(t *testing.T) {
	t.Parallel()
	var got []string
	for _, p := range whole.Params() {
		got = append(got, strings.TrimSpace(fmt.Sprintln(p.Index, p.Name, p.Sort, p.Access, p.DTypes, p.Shape, p.Given, p.MayBe, p.Bound)))
	}
	assert.Equal(t, []string{
		`0 x tensor read f32, bf16, f16 or f64 [.. cols>0]  []`,
		`1 bias tensor read|write:grad =x (cols) ? []`,
		`2 y tensor write|update:accumulate f32 or bf16 [.. cols>0]  [x]`,
		`3 glu tensor read f32, bf16, f16 or f64 [.. 2*cols] ? []`,
		`4 ends tensor read i32 or i64 [rows+1] ? []`,
		`5 any tensor read any  ? []`,
		`6 grad int     []`,
		`7 masked int     []`,
		`8 eps float     [] finite`,
		`9 step int     [] >=1`,
		`10 alpha float     []`,
		`11 mask tensor read bool  ?:masked []`,
		`12 rate float     [] [0,1)`,
		`13 out.data tensor write f8e4m3 or f8e5m2  ? []`,
		`14 out.scale tensor depends f32 (1) ? []`,
		`15 parts list of tensors read =x  ? []`,
		`16 counts tensor read i32 (n) ? []`,
		`17 accumulate int     []`,
		`-1 outs      []`,
		`18 scales_are_read int     []`,
	}, got)
	p := whole.Params()[14]
	assert.Equal(t, "OUT_SCALE", p.Macro())
	assert.Equal(t, []int{12, 1}, p.Path)
	assert.Equal(t, tensor.Tolerance{Abs: 2, Rel: 4, ULP: 1}, whole.Tolerance().Of(tensor.BF16))
}

// listArgs have lists that the schemas of ops describe.
type listArgs struct {
	Flag  *tensor.Tensor     `op:"0 flag update i32 (1)"`
	Lists [][]*tensor.Tensor `op:"1 lists len=n"`
	Norms *tensor.Tensor     `op:"2 norms write f32 (n) ?"`
}

func listOp(lists string) *opregistry.Op[listArgs] {
	return opregistry.NewOp("lists", opregistry.Schema[listArgs]{Lists: lists})
}

func TestLists(t *testing.T) {
	t.Parallel()
	op := listOp("in read compute; out write compute may=in; scale? read f32 (1)")
	good := func() listArgs {
		return listArgs{Flag: of(tensor.I32, 1), Lists: [][]*tensor.Tensor{{f32(2, 3), f32(4)}, {f32(2, 3), f32(4)}}, Norms: f32(2)}
	}
	tests := []struct {
		name string
		edit func(a *listArgs)
		want string
	}{
		{"good", func(*listArgs) {}, ""},
		{"three lists", func(a *listArgs) { a.Lists = append(a.Lists, []*tensor.Tensor{f32(1), f32(1)}) }, ""},
		{"no tensors", func(a *listArgs) { a.Lists, a.Norms = [][]*tensor.Tensor{nil, nil}, f32(0) }, ""},
		{"one list", func(a *listArgs) { a.Lists = a.Lists[:1] }, `"lists": given 1 lists, want 2 to 3 lists (in, out, scale?)`},
		{"four lists", func(a *listArgs) { a.Lists = append(a.Lists, a.Lists...) }, `"lists": given 4 lists, want 2 to 3 lists (in, out, scale?)`},
		{"lengths", func(a *listArgs) { a.Lists[1] = a.Lists[1][:1] }, `"lists[1]": given 1, want 2 tensors, as list 0`},
		{"nil", func(a *listArgs) { a.Lists[1][1] = nil }, `"lists[1][1]": given nil, want a tensor`},
		{"dtype", func(a *listArgs) { a.Lists[1][1] = of(tensor.U8, 4) }, `"lists[1][1]": given u8[4] on cpu:0, want dtype f32, bf16, f16 or f64`},
		{"shape", func(a *listArgs) { a.Lists[1][1] = f32(5) }, `"lists[1][1]": given f32[5] on cpu:0, want the shape of lists[0][1], [4]`},
		{"one element", func(a *listArgs) { a.Lists = append(a.Lists, []*tensor.Tensor{f32(1), f32(2)}) }, `"lists[2][1]": given f32[2] on cpu:0, want 1 element (1)`},
		{"length by another", func(a *listArgs) { a.Norms = f32(3) }, `"norms": given f32[3] on cpu:0, want 2 elements (n)`},
		{"in place", func(a *listArgs) { a.Lists[1] = a.Lists[0] }, ""},
		{"over another one", func(a *listArgs) { a.Lists[1][1] = piece(a.Lists[0][0], 0, 4) }, `"lists[1][1]": given a view that overlaps lists[0][0], want memory apart from lists[0][0]`},
		{"written twice", func(a *listArgs) { a.Lists[1][1] = piece(a.Lists[1][0], 0, 4) }, `"lists[1][1]": given a view that overlaps lists[1][0], want memory apart from lists[1][0]`},
		{"flag and tensor", func(a *listArgs) { a.Norms = piece(a.Lists[0][0], 0, 2) }, `"norms": given a view that overlaps lists[0][0], want memory apart from lists[0][0]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := good()
			tt.edit(&a)
			err := op.Validate(a)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, `op "lists": argument `+tt.want)
		})
	}
	var names []string
	for _, o := range op.Operands(good()) {
		names = append(names, o.Name+" "+o.Access.String())
	}
	assert.Equal(t, []string{"flag update", "lists[0][0] read", "lists[0][1] read", "lists[1][0] write", "lists[1][1] write", "norms write"}, names)
}

func TestWhere(t *testing.T) {
	t.Parallel()
	type args struct {
		In  *tensor.Tensor `op:"0 in read compute [.. h]"`
		Out *tensor.Tensor `op:"1 out write =in [.. h] may=in"`
	}
	plain := opregistry.NewOp("plain", opregistry.Schema[args]{})
	gated := opregistry.NewOp("gated", opregistry.Schema[args]{Where: "in [.. 2*h]; out may="})
	wide, narrow := f32(2, 8), f32(2, 4)
	require.NoError(t, plain.Validate(args{In: wide, Out: wide}))
	require.NoError(t, gated.Validate(args{In: wide, Out: narrow}))
	require.EqualError(t, gated.Validate(args{In: wide, Out: f32(2, 8)}), `op "gated": argument "out": given f32[2 8] on cpu:0, want shape [2 4], as [.. h]`)
	require.EqualError(t, gated.Validate(args{In: f32(2, 3), Out: narrow}), `op "gated": argument "in": given f32[2 3] on cpu:0, want shape [.. 2*h]`)
}

func TestContiguous(t *testing.T) {
	t.Parallel()
	type args struct {
		Bits *tensor.Tensor `op:"0 bits read f32 (cols) contiguous"`
		X    *tensor.Tensor `op:"1 x read f32 [cols]"`
	}
	op := newOp[args]()
	x, err := tensor.FromSlice(make([]float32, 6), 6)
	require.NoError(t, err)
	every, err := x.AsStrided([]int{3}, []int{2}, 0)
	require.NoError(t, err)
	first, err := x.Slice(0, 0, 3)
	require.NoError(t, err)

	require.NoError(t, op.Validate(args{Bits: first, X: every}))
	assert.ErrorContains(t, op.Validate(args{Bits: every, X: first}), "want a contiguous tensor")
	assert.ErrorContains(t, op.Validate(args{Bits: x, X: first}), "want 3 elements (cols)", "an operand sets the symbols of one before it")
	assert.True(t, op.Params()[0].Contiguous)
}

func TestWrongDescriptionsPanic(t *testing.T) {
	t.Parallel()
	type pair struct {
		A *tensor.Tensor `op:"0 a read f32"`
		B *tensor.Tensor `op:"1 b write f32"`
	}
	type saved struct{ Saved *opregistry.Saved }
	refuse := func(want string, f func()) {
		t.Helper()
		assert.PanicsWithValue(t, `BUG: opregistry: op "op": `+want, f)
	}
	refuse("field A has no tag op, or is not exported", func() { newOp[struct{ A *tensor.Tensor }]() })
	refuse("field a has no tag op, or is not exported", func() {
		newOp[struct {
			a int `op:"0 a"`
		}]()
	})
	refuse(`field A: tag op:"x a" begins with "x", want an index or -`, func() {
		newOp[struct {
			A int `op:"x a"`
		}]()
	})
	refuse(`field A has no name in its tag "0"`, func() {
		newOp[struct {
			A int `op:"0"`
		}]()
	})
	refuse(`field A: tag op:"0 a.b": given name "a.b", want letters, digits and _`, func() {
		newOp[struct {
			A int `op:"0 a.b"`
		}]()
	})
	refuse(`field A: a: unknown word "reads"`, func() {
		newOp[struct {
			A *tensor.Tensor `op:"0 a reads f32"`
		}]()
	})
	refuse(`field A: given access "write|update", want one such as read or write|update:accumulate`, func() {
		newOp[struct {
			A *tensor.Tensor `op:"0 a write|update f32"`
		}]()
	})
	refuse(`field A: "0 a read f32 [rows" has a bracket that does not end`, func() {
		newOp[struct {
			A *tensor.Tensor `op:"0 a read f32 [rows"`
		}]()
	})
	refuse("operand a has no access, want read, write or update", func() {
		newOp[struct {
			A *tensor.Tensor `op:"0 a f32"`
		}]()
	})
	refuse("operand a: no axis and no list has the length n of (n)", func() {
		newOp[struct {
			A *tensor.Tensor `op:"0 a read f32 (n)"`
		}]()
	})
	refuse("operand a has no dtype, want one such as compute or f32", func() {
		newOp[struct {
			A *tensor.Tensor `op:"0 a read"`
		}]()
	})
	refuse("operand a depends on b, which is no argument", func() {
		newOp[struct {
			A *tensor.Tensor `op:"0 a read f32 ?:b"`
		}]()
	})
	refuse("operand a names the operand b, which there is not", func() {
		newOp[struct {
			A *tensor.Tensor `op:"0 a read =b"`
		}]()
	})
	refuse("operand b is only read and may be a: say so at the operand that is written", func() {
		newOp[struct {
			A *tensor.Tensor `op:"0 a write f32"`
			B *tensor.Tensor `op:"1 b read f32 may=a"`
		}]()
	})
	refuse("operand a: shape [a .. b] has .. after another axis", func() {
		newOp[struct {
			A *tensor.Tensor `op:"0 a read f32 [a .. b]"`
		}]()
	})
	refuse("arguments a and b both have the index 0", func() {
		newOp[struct {
			A int `op:"0 a"`
			B int `op:"0 b"`
		}]()
	})
	refuse("no argument has the index 0, want indexes from 0 to 0", func() {
		newOp[struct {
			A int `op:"1 a"`
		}]()
	})
	refuse("two arguments have the name A in C", func() {
		newOp[struct {
			A int `op:"0 a"`
			B int `op:"1 A"`
		}]()
	})
	refuse("field A of type string has no form in C, want - for its index", func() {
		newOp[struct {
			A string `op:"0 a"`
		}]()
	})
	refuse("argument a of type bool has the bound >0, want one of a float, an int or a uint8", func() {
		newOp[struct {
			A bool `op:"0 a >0"`
		}]()
	})
	refuse("want both Family and a field of type *opregistry.Saved, or neither", func() { newOp[saved]() })
	refuse("want both an operand whose access depends and Access, or neither", func() {
		newOp[struct {
			A *tensor.Tensor `op:"0 a depends f32"`
		}]()
	})
	refuse("Lists describes lists, but no field is one of lists", func() {
		used(opregistry.NewOp("op", opregistry.Schema[pair]{Lists: "a read f32"}))
	})
	refuse("Where describes c, but no argument has that name", func() {
		used(opregistry.NewOp("op", opregistry.Schema[pair]{Where: "c read"}))
	})
	refuse("given arguments of type int, want a struct", func() { newOp[int]() })
}

// newOp returns an op whose description is compiled.
func newOp[A any]() *opregistry.Op[A] { return used(opregistry.NewOp("op", opregistry.Schema[A]{})) }

func used[A any](op *opregistry.Op[A]) *opregistry.Op[A] {
	op.Params()
	return op
}

func TestOptionalFloatsHaveBounds(t *testing.T) {
	t.Parallel()
	type args struct {
		Limit opregistry.OptionalFloat `op:"0 limit >0"`
	}
	op := newOp[args]()
	require.NoError(t, op.Validate(args{}), "left out")
	require.NoError(t, op.Validate(args{opregistry.Float(1)}))
	require.EqualError(t, op.Validate(args{opregistry.Float(0)}), `op "op": argument "limit": given 0, want a number > 0`)
}

func TestAxesOfAnyLength(t *testing.T) {
	t.Parallel()
	type args struct {
		A *tensor.Tensor `op:"0 a read f32 [* _ _]"`
		B *tensor.Tensor `op:"1 b read f32 [* _ _]"`
		C *tensor.Tensor `op:"2 c read f32 [_ n] ?"`
		D *tensor.Tensor `op:"3 d read f32 [* n 2] ?"`
		E *tensor.Tensor `op:"4 e read f32 [_] ?"`
	}
	op := newOp[args]()
	for want, a := range map[string]args{
		"": {A: f32(2, 3), B: f32(5, 7, 11), C: f32(4, 6), D: f32(9, 6, 2), E: f32(3)},
		`"a": given f32[2] on cpu:0, want at least 2 axes`:               {A: f32(2), B: f32(2, 3)},
		`"b": given f32[2] on cpu:0, want at least 2 axes`:               {A: f32(2, 3), B: f32(2)},
		`"c": given f32[4 6 1] on cpu:0, want shape [_ n]`:               {A: f32(2, 3), B: f32(2, 3), C: f32(4, 6, 1)},
		`"d": given f32[9 5 2] on cpu:0, want shape [* 6 2], as [* n 2]`: {A: f32(2, 3), B: f32(2, 3), C: f32(4, 6), D: f32(9, 5, 2)},
		`"e": given f32[3 1] on cpu:0, want 1 axis`:                      {A: f32(2, 3), B: f32(2, 3), E: f32(3, 1)},
	} {
		err := op.Validate(a)
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, `op "op": argument `+want)
	}
	assert.PanicsWithValue(t, `BUG: opregistry: op "op": operand a: shape [_ *] has * after another axis`, func() {
		newOp[struct {
			A *tensor.Tensor `op:"0 a read f32 [_ *]"`
		}]()
	})
}
