package opregistry_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

type supportArgs struct {
	X *tensor.Tensor `op:"0 x update any ?"`
}

var scale = opregistry.NewOp("scale", opregistry.Schema[supportArgs]{})

func TestSupport(t *testing.T) {
	t.Parallel()
	odd := func(a supportArgs) error {
		if a.X.NumElements()%2 == 1 {
			return errors.New("an odd number of elements")
		}
		return nil
	}
	tests := []struct {
		name    string
		give    opregistry.Support
		shape   []int
		want    string // of the error
		text    string // of the declaration
		perCall bool
	}{
		{name: "nothing", shape: []int{2}},
		{name: "dtype", give: opregistry.Support{DTypes: []tensor.DType{tensor.BF16, tensor.F16}}, shape: []int{2},
			want: "unsupported: dtype f32: declared for bf16, f16", text: "dtype bf16, f16", perCall: true},
		{name: "served dtype", give: opregistry.Support{DTypes: []tensor.DType{tensor.F32}}, shape: []int{2}, text: "dtype f32", perCall: true},
		{name: "too few axes", give: opregistry.Support{MinRank: 2}, shape: []int{4}, want: "unsupported: 1 axes: declared for at least 2", text: "at least 2 axes", perCall: true},
		{name: "too many axes", give: opregistry.Support{MaxRank: 2}, shape: []int{1, 1, 1}, want: "unsupported: 3 axes: declared for at most 2", text: "at most 2 axes", perCall: true},
		{name: "too small", give: opregistry.Support{MinElements: 8, MaxElements: 9}, shape: []int{7}, want: "unsupported: 7 elements: declared for at least 8", text: "8 to 9 elements", perCall: true},
		{name: "too large", give: opregistry.Support{MaxElements: 9}, shape: []int{5, 2}, want: "unsupported: 10 elements: declared for at most 9", text: "at most 9 elements", perCall: true},
		{name: "call", give: opregistry.Support{Call: odd}, shape: []int{3}, want: "unsupported: an odd number of elements", text: "decides at the call", perCall: true},
		{name: "served call", give: opregistry.Support{Call: odd}, shape: []int{4}, text: "decides at the call", perCall: true},
		{name: "features", give: opregistry.Support{Features: []string{"AVX2"}}, shape: []int{4}, text: "CPU feature AVX2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := 1
			for _, axis := range tt.shape {
				n *= axis
			}
			x, err := tensor.FromSlice(make([]float32, n), tt.shape...)
			require.NoError(t, err)
			err = opregistry.Serves(&tt.give, scale, supportArgs{x})
			if tt.want == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, tt.want)
				require.ErrorIs(t, err, opregistry.ErrUnsupported)
			}
			assert.Equal(t, tt.text, tt.give.String())
			assert.Equal(t, tt.perCall, tt.give.PerCall())
		})
	}
}

func TestSupportOfTheMachine(t *testing.T) {
	t.Parallel()
	require.NoError(t, (&opregistry.Support{}).Machine())
	err := (&opregistry.Support{Features: []string{"asimd", "avx2"}}).Machine()
	require.ErrorIs(t, err, opregistry.ErrUnsupported, "no machine has both")
	require.ErrorContains(t, err, "which this machine lacks")
}

func TestSupportIsCheckedAtRegistration(t *testing.T) {
	t.Parallel()
	for want, support := range map[string]opregistry.Support{
		`unknown CPU feature "avx9"`:             {Features: []string{"avx9"}},
		"given dtype unspecified in its support": {DTypes: []tensor.DType{tensor.Unspecified}},
		"given Support.Call of type func(int) error, want a non-nil func(opregistry_test.supportArgs) error": {Call: func(int) error { return nil }},
	} {
		err := opregistry.NewRegistry().Register(opregistry.Source{Name: "s", Impls: []opregistry.Impl{{
			Op: scale, ID: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "acme", Support: support,
			Run: func(*opregistry.Exec, supportArgs) error { return nil },
		}}})
		require.ErrorContains(t, err, want)
	}
}

// A call that leaves an argument out is served, and only such a call.
func TestWithout(t *testing.T) {
	t.Parallel()
	type args struct {
		In    *tensor.Tensor           `op:"0 in read f32"`
		Bias  *tensor.Tensor           `op:"1 bias read f32 ?"`
		Parts []*tensor.Tensor         `op:"2 parts read f32 ?"`
		Count int                      `op:"3 count"`
		Rate  opregistry.OptionalFloat `op:"4 rate >0"`
		Step  int                      `op:"5 step >=1"`
	}
	op := opregistry.NewOp("op", opregistry.Schema[args]{})
	x := f32(1)
	for name, give := range map[string]args{
		"bias": {In: x, Bias: x}, "parts": {In: x, Parts: []*tensor.Tensor{x}}, "count": {In: x, Count: -1}, "rate": {In: x, Rate: opregistry.Float(0)},
	} {
		s := opregistry.Support{Without: []string{name}}
		require.NoError(t, opregistry.Serves(&s, op, args{In: x, Parts: []*tensor.Tensor{}}))
		require.ErrorContains(t, opregistry.Serves(&s, op, give), "argument "+name+" is given")
		assert.True(t, s.PerCall())
		assert.Equal(t, "calls without "+name, s.String())
	}
	register := func(name string) error {
		return opregistry.NewRegistry().Register(opregistry.Source{Name: "acme", Impls: []opregistry.Impl{{
			Op: op, ID: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "acme", Run: func(*opregistry.Exec, args) error { return nil },
			Support: opregistry.Support{Without: []string{name}},
		}}})
	}
	require.NoError(t, register("bias"))
	require.ErrorContains(t, register("bia"), `given "bia" in Support.Without, want the name of an argument`)
	require.ErrorContains(t, register("step"), `given "step" in Support.Without, want an argument that may be left out`)
	require.ErrorContains(t, register("in"), "want an argument that may be left out")
}
