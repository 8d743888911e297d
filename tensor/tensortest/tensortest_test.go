package tensortest_test

import (
	"fmt"
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// recorder is a testing.TB that keeps what a helper reports.
type recorder struct {
	testing.TB
	errors []string
}

type fatal string

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) { panic(fatal(fmt.Sprintf(format, args...))) }

// stopped returns the text with which f ends the test.
func stopped(t *testing.T, f func(tb testing.TB)) (text string) {
	t.Helper()
	defer func() {
		text = string(recover().(fatal))
	}()
	f(&recorder{TB: t})
	return ""
}

func TestRandom(t *testing.T) {
	t.Parallel()
	for _, d := range tensor.DTypes() {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			x := tensortest.Random(t, 7, d, 3, 50)
			assert.Equal(t, d, x.DType())
			assert.Equal(t, tensor.Shape{3, 50}, x.Shape())
			assert.True(t, x.IsContiguous())
			assert.Equal(t, tensortest.Bytes(x), tensortest.Bytes(tensortest.Random(t, 7, d, 3, 50)), "same seed, same values")
			assert.NotEqual(t, tensortest.Bytes(x), tensortest.Bytes(tensortest.Random(t, 8, d, 3, 50)), "another seed, other values")
			lo, hi := math.Inf(1), math.Inf(-1)
			for _, v := range x.Float64s() {
				lo, hi = min(lo, v), max(hi, v)
				if !d.IsFloat() {
					assert.Equal(t, v, math.Trunc(v))
				}
			}
			switch {
			case d.IsFloat():
				assert.True(t, -1 <= lo && lo < -0.9 && 0.9 < hi && hi <= 1, "values from %v to %v", lo, hi)
			case d == tensor.Bool:
				assert.Equal(t, []float64{0, 1}, []float64{lo, hi})
			default:
				assert.Equal(t, []float64{0, 7}, []float64{lo, hi})
			}
		})
	}
	assert.Equal(t, 1, tensortest.Random(t, 1, tensor.F32).NumElements(), "a scalar")
	assert.Zero(t, tensortest.Random(t, 1, tensor.F32, 0, 3).NumElements())
}

func TestBadArguments(t *testing.T) {
	t.Parallel()
	assert.Contains(t, stopped(t, func(tb testing.TB) { tensortest.Random(tb, 1, tensor.Unspecified, 1) }), "valid dtype")
	assert.Contains(t, stopped(t, func(tb testing.TB) { tensortest.Random(tb, 1, tensor.F32, -1) }), "[-1]")
	assert.Contains(t, stopped(t, func(tb testing.TB) { tensortest.Guarded(tb, tensor.F32, 1<<20, 1<<20) }), "elements")
	assert.Contains(t, stopped(t, func(tb testing.TB) { tensortest.GuardedAs(tb, tensor.F32, []int{2}, nil) }), "as many strides")
}

func TestGuardedStartsPoisonedAndIntact(t *testing.T) {
	t.Parallel()
	for _, d := range tensor.DTypes() {
		for _, shape := range [][]int{{}, {0}, {1}, {7}, {3, 5}, {2, 3, 4}, {2, 0, 4}} {
			x, intact := tensortest.Guarded(t, d, shape...)
			intact(t)
			assert.True(t, x.IsContiguous())
			y, intactStrided := tensortest.GuardedStrided(t, d, shape...)
			intactStrided(t)
			assert.Equal(t, len(shape) > 0 && x.NumElements() > 1, !y.IsContiguous(), "%v is strided", y)
			for _, v := range append(x.Float64s(), y.Float64s()...) {
				assert.True(t, math.IsNaN(v) || !d.IsFloat() && v != 0, "%v of %v", v, d)
			}
			zeros := make([]float64, x.NumElements())
			require.NoError(t, x.SetFloat64s(zeros))
			require.NoError(t, y.SetFloat64s(zeros))
			intact(t)
			intactStrided(t)
		}
	}
}

// poke writes to the element at a distance from x's first one, as a kernel with
// an error in its bounds does.
func poke(x *tensor.Tensor, at int) {
	*(*float32)(unsafe.Add(x.Pointer(), 4*at)) = 0
}

func TestGuardReports(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		at   int
		want string
	}{
		{"just before", -1, "1 element before the first"},
		{"far before", -64, "64 elements before the first"},
		{"in a gap", 3, "a gap, 3 elements after the first"},
		{"just after", 11, "1 element after the last"},
		{"far after", 74, "64 elements after the last"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x, intact := tensortest.GuardedStrided(t, tensor.F32, 2, 3)
			poke(x, tt.at)
			r := &recorder{TB: t}
			intact(r)
			require.Len(t, r.errors, 1)
			assert.Contains(t, r.errors[0], tt.want)
			assert.Contains(t, r.errors[0], "1 guard elements")
		})
	}
}

func TestBytes(t *testing.T) {
	t.Parallel()
	x, _ := tensortest.GuardedStrided(t, tensor.F32, 2, 3)
	before := tensortest.Bytes(x)
	assert.Len(t, before, 11*4)
	poke(x, 4)
	assert.NotEqual(t, before, tensortest.Bytes(x), "gaps belong to the snapshot")
	assert.Nil(t, tensortest.Bytes(tensortest.Random(t, 1, tensor.F32, 0)))
}

func TestClose(t *testing.T) {
	t.Parallel()
	nan, inf := math.NaN(), math.Inf(1)
	up := func(v float32, n int) float64 {
		return float64(math.Float32frombits(math.Float32bits(v) + uint32(n)))
	}
	tests := []struct {
		name      string
		want, got float64
		tol       tensortest.Tolerance
		close     bool
	}{
		{"equal", 1, 1, tensortest.Tolerance{}, true},
		{"zeros", 0, math.Copysign(0, -1), tensortest.Tolerance{}, true},
		{"unequal", 1, up(1, 1), tensortest.Tolerance{}, false},
		{"abs", 1, 1.5, tensortest.Tolerance{Abs: 0.5}, true},
		{"beyond abs", 1, 1.5, tensortest.Tolerance{Abs: 0.49}, false},
		{"rel", -100, -101, tensortest.Tolerance{Rel: 0.01}, true},
		{"beyond rel", -100, -101.5, tensortest.Tolerance{Rel: 0.01}, false},
		{"sum of abs and rel", 100, 102, tensortest.Tolerance{Abs: 1, Rel: 0.01}, true},
		{"ulp", 1, up(1, 3), tensortest.Tolerance{ULP: 3}, true},
		{"beyond ulp", 1, up(1, 4), tensortest.Tolerance{ULP: 3}, false},
		{"ulp across zero", up(0, 2), -up(0, 1), tensortest.Tolerance{ULP: 3}, true},
		{"beyond ulp across zero", up(0, 2), -up(0, 2), tensortest.Tolerance{ULP: 3}, false},
		{"want rounds to got", 1 + 1e-12, 1, tensortest.Tolerance{ULP: 1}, true},
		{"nan", nan, nan, tensortest.Tolerance{}, true},
		{"nan got", 1, nan, tensortest.Tolerance{Abs: inf, Rel: inf, ULP: math.MaxInt}, false},
		{"nan wanted", nan, 1, tensortest.Tolerance{Abs: inf, Rel: inf, ULP: math.MaxInt}, false},
		{"inf", inf, inf, tensortest.Tolerance{}, true},
		{"other inf", inf, -inf, tensortest.Tolerance{Abs: inf, ULP: math.MaxInt}, false},
		{"inf got", math.MaxFloat32, inf, tensortest.Tolerance{Abs: inf, ULP: 1}, false},
		{"inf wanted", inf, math.MaxFloat32, tensortest.Tolerance{Rel: inf, ULP: 1}, false},
		{"want beyond the range of got", 1e39, inf, tensortest.Tolerance{ULP: 1}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want, err := tensor.FromSlice([]float64{0, tt.want})
			require.NoError(t, err)
			got, err := tensor.FromSlice([]float32{0, float32(tt.got)})
			require.NoError(t, err)
			r := &recorder{TB: t}
			assert.Equal(t, tt.close, tensortest.Close(r, want, got, tt.tol))
			assert.Equal(t, tt.close, len(r.errors) == 0)
		})
	}
}

func TestCloseReport(t *testing.T) {
	t.Parallel()
	want, err := tensor.FromSlice([]float32{0, 1, 2, 3, 4, 5}, 2, 3)
	require.NoError(t, err)
	got, err := tensor.FromSlice([]float32{0, 1.5, 2, 3, 9, 5}, 2, 3)
	require.NoError(t, err)
	r := &recorder{TB: t}
	assert.False(t, tensortest.Close(r, want, got, tensortest.Tolerance{Abs: 0.25, ULP: 2}))
	assert.Equal(t, []string{"tensortest: 2 of 6 elements of f32[2 3] on cpu:0 are not within 0.25 + 0·|want| or 2 ulp\n" +
		"first at [0 1]: got 1.5, want 1, off by 0.5 or 4194304 ulp\n" +
		"worst at [1 1]: got 9, want 4, off by 5 or 9437184 ulp"}, r.errors)

	r = &recorder{TB: t}
	assert.False(t, tensortest.Close(r, want, tensortest.Random(t, 1, tensor.F32, 3, 2), tensortest.Tolerance{Abs: 100}))
	assert.Equal(t, []string{"tensortest: Close: got shape [3 2], want [2 3]"}, r.errors)
	assert.False(t, tensortest.Close(&recorder{TB: t}, want, nil, tensortest.Tolerance{}))
	assert.False(t, tensortest.CloseTo(&recorder{TB: t}, []float64{1}, got, tensortest.Tolerance{Abs: 100}))
}

// Distances are counted in the values of got's dtype, for each of them.
func TestCloseULPOfEachDType(t *testing.T) {
	t.Parallel()
	steps := map[tensor.DType]float64{
		tensor.F64: 0x1p-52, tensor.F32: 0x1p-23, tensor.BF16: 0x1p-7, tensor.F16: 0x1p-10,
		tensor.F8E4M3: 0x1p-3, tensor.F8E5M2: 0x1p-2, tensor.I64: 1, tensor.I32: 1, tensor.U8: 1,
	}
	for d, step := range steps {
		got, intact := tensortest.GuardedStrided(t, d, 2)
		require.NoError(t, got.SetFloat64s([]float64{1, 1 + 2*step}))
		assert.True(t, tensortest.CloseTo(t, []float64{1, 1}, got, tensortest.Tolerance{ULP: 2}), d)
		assert.False(t, tensortest.CloseTo(&recorder{TB: t}, []float64{1, 1}, got, tensortest.Tolerance{ULP: 1}), d)
		intact(t)
	}
}

func TestToleranceString(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "equality", tensortest.Tolerance{}.String())
	assert.Equal(t, "1e-06 + 0.01·|want|", tensortest.Tolerance{Abs: 1e-6, Rel: 0.01}.String())
	assert.Equal(t, "3 ulp", tensortest.Tolerance{ULP: 3}.String())
}
