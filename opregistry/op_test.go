package opregistry_test

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

func TestOp(t *testing.T) {
	t.Parallel()
	type args struct {
		In    *tensor.Tensor `op:"0 in read any"`
		Saved *opregistry.Saved
	}
	op := opregistry.NewOp("copy_fwd", opregistry.Schema[args]{Doc: "copies", Family: "pair", Forward: true})
	assert.Equal(t, "copy_fwd", op.Name())
	assert.Equal(t, "copies", op.Doc())
	assert.Equal(t, "pair", op.Family())
	assert.True(t, op.Forward())
	a := args{In: vector(t, 1), Saved: new(opregistry.Saved)}
	assert.Same(t, a.Saved, op.At(&a).Saved())
	require.EqualError(t, op.Validate(args{}), `op "copy_fwd": argument "in": given nil, want a tensor`)
	require.Equal(t, op.Validate(args{}), op.ValidateAt(&args{}))
	require.NoError(t, op.ValidateAt(&a))
	assert.Same(t, a.In, op.Operands(a)[0].Tensor)

	alone := newCopy()
	assert.Empty(t, alone.Family())
	assert.False(t, alone.Forward())
	assert.Nil(t, alone.At(&copyArgs{}).Saved())
}

func TestNewOpPanics(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "Copy", "2copy"} {
		assert.PanicsWithValue(t, fmt.Sprintf("BUG: opregistry: op name %q is not lower_snake", name), func() {
			opregistry.NewOp(name, opregistry.Schema[copyArgs]{})
		})
	}
}

// The description is compiled at the first use, also by goroutines at the same time.
func TestFirstUse(t *testing.T) {
	t.Parallel()
	op := newCopy()
	a := copyArgs{In: vector(t, 1), Out: vector(t, 1)}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			assert.NoError(t, op.Validate(a))
			assert.Equal(t, newCopy().Params(), op.Params())
		})
	}
	wg.Wait()
}

func TestUpdated(t *testing.T) {
	t.Parallel()
	type args struct {
		R *tensor.Tensor `op:"0 r read any ?"`
		U *tensor.Tensor `op:"1 u update any ?"`
		V *tensor.Tensor `op:"2 v write any ?"`
		W *tensor.Tensor `op:"3 w write any ?"`
	}
	op := opregistry.NewOp("op", opregistry.Schema[args]{})
	x, y := vector(t, 4), vector(t, 4)
	tests := []struct {
		name string
		give args
		want []string
	}{
		{"disjoint", args{R: x, W: y}, nil},
		{"in place", args{R: x, W: x}, []string{"w"}},
		{"updated", args{R: x, U: y}, []string{"u"}},
		{"written over what another updates", args{U: x, W: x}, []string{"u", "w"}},
		{"written twice", args{V: x, W: x}, nil},
		{"no operands", args{}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var names []string
			for _, o := range op.At(&tt.give).Updated() {
				names = append(names, o.Name)
			}
			assert.Equal(t, tt.want, names)
		})
	}
}

func TestSaved(t *testing.T) {
	t.Parallel()
	var s opregistry.Saved
	assert.Empty(t, s.Owner())
	s.SetOwner("default.flagos")
	assert.Equal(t, "default.flagos", s.Owner())
}

func TestErrors(t *testing.T) {
	t.Parallel()
	err := opregistry.Unsupported("dtype %v of %s", tensor.F16, "x")
	require.ErrorIs(t, err, opregistry.ErrUnsupported)
	require.EqualError(t, err, "unsupported: dtype f16 of x")
	require.EqualError(t, &opregistry.ArgError{Op: "copy", Operand: "in", Got: "nil", Want: "a tensor"}, `op "copy": argument "in": given nil, want a tensor`)
	failure := &opregistry.ImplError{Op: "copy", ID: "vendor.acme", Err: err}
	require.EqualError(t, failure, `op "copy": impl "vendor.acme": unsupported: dtype f16 of x`)
	require.ErrorIs(t, failure, opregistry.ErrUnsupported)
}

func TestUntouched(t *testing.T) {
	t.Parallel()
	cause := errors.New("its process died")
	err := opregistry.Untouched(cause)
	require.EqualError(t, err, "its process died")
	require.ErrorIs(t, err, opregistry.ErrUntouched)
	require.ErrorIs(t, err, cause)
	require.NotErrorIs(t, err, opregistry.ErrUnsupported)
}

func TestKinds(t *testing.T) {
	t.Parallel()
	for _, k := range opregistry.Kinds() {
		text, err := k.MarshalText()
		require.NoError(t, err)
		var back opregistry.Kind
		require.NoError(t, back.UnmarshalText(text))
		assert.Equal(t, k, back)
		parsed, err := opregistry.ParseKind(" " + string(text) + "\n")
		require.NoError(t, err)
		assert.Equal(t, k, parsed)
	}
	parsed, err := opregistry.ParseKind("VENDOR")
	require.NoError(t, err)
	assert.Equal(t, opregistry.KindVendor, parsed)
	for _, name := range []string{"", "unspecified", "vendors"} {
		_, err := opregistry.ParseKind(name)
		require.ErrorContains(t, err, "want flagos, vendor or reference", "kind %q", name)
		require.Error(t, new(opregistry.Kind).UnmarshalText([]byte(name)))
	}
	_, err = opregistry.KindUnspecified.MarshalText()
	require.Error(t, err)
	_, err = opregistry.Kind(9).MarshalText()
	require.ErrorContains(t, err, "kind(9)")
}

func TestUntyped(t *testing.T) {
	t.Parallel()
	op := scale
	assert.Equal(t, reflect.TypeFor[supportArgs](), op.Args())
	var got any
	run := opregistry.Untyped(op, func(_ *opregistry.Exec, args any) error {
		got = args
		return opregistry.ErrUnsupported
	})
	f, ok := run.(opregistry.Func[supportArgs])
	require.True(t, ok)
	require.ErrorIs(t, f(nil, supportArgs{}), opregistry.ErrUnsupported)
	assert.Equal(t, supportArgs{}, got)
	assert.Equal(t, op.Operands(supportArgs{}), opregistry.CallOf(op, supportArgs{}).Operands())
}
