package opregistry_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

func TestOp(t *testing.T) {
	t.Parallel()
	wrong := errors.New("wrong")
	schema := copySchema()
	schema.Family, schema.Forward = "pair", true
	schema.Saved = func(a copyArgs) *opregistry.Saved { return a.Saved }
	schema.Validate = func(a copyArgs) error {
		if a.In == nil {
			return wrong
		}
		return nil
	}
	op := opregistry.NewOp("copy_fwd", schema)
	assert.Equal(t, "copy_fwd", op.Name())
	assert.Equal(t, "copies", op.Doc())
	assert.Equal(t, "pair", op.Family())
	assert.True(t, op.Forward())
	saved := new(opregistry.Saved)
	assert.Same(t, saved, op.Saved(copyArgs{Saved: saved}))
	require.ErrorIs(t, op.Validate(copyArgs{}), wrong)
	in := vector(t, 1)
	require.NoError(t, op.Validate(copyArgs{In: in}))
	assert.Same(t, in, op.Operands(copyArgs{In: in})[0].Tensor)

	alone := newCopy()
	assert.Empty(t, alone.Family())
	assert.False(t, alone.Forward())
	assert.Nil(t, alone.Saved(copyArgs{Saved: saved}))
}

func TestNewOpPanics(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, op string
		edit     func(s *opregistry.Schema[copyArgs])
		want     string
	}{
		{"no name", "", func(*opregistry.Schema[copyArgs]) {}, `BUG: opregistry: op name "" is not lower_snake`},
		{"upper case", "Copy", func(*opregistry.Schema[copyArgs]) {}, `BUG: opregistry: op name "Copy" is not lower_snake`},
		{"digit first", "2copy", func(*opregistry.Schema[copyArgs]) {}, `BUG: opregistry: op name "2copy" is not lower_snake`},
		{"no Validate", "copy", func(s *opregistry.Schema[copyArgs]) { s.Validate = nil }, `BUG: opregistry: op "copy" needs Validate and Operands`},
		{"no Operands", "copy", func(s *opregistry.Schema[copyArgs]) { s.Operands = nil }, `BUG: opregistry: op "copy" needs Validate and Operands`},
		{"Family without Saved", "copy", func(s *opregistry.Schema[copyArgs]) { s.Family = "f" }, `BUG: opregistry: op "copy" needs both Family and Saved or neither`},
		{"Saved without Family", "copy", func(s *opregistry.Schema[copyArgs]) {
			s.Saved = func(copyArgs) *opregistry.Saved { return nil }
		}, `BUG: opregistry: op "copy" needs both Family and Saved or neither`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			schema := copySchema()
			tt.edit(&schema)
			assert.PanicsWithValue(t, tt.want, func() { opregistry.NewOp(tt.op, schema) })
		})
	}
}

func TestUpdated(t *testing.T) {
	t.Parallel()
	x, y := vector(t, 4), vector(t, 4)
	read := func(v *tensor.Tensor) opregistry.Operand {
		return opregistry.Operand{Name: "r", Tensor: v, Access: opregistry.AccessRead}
	}
	write := func(v *tensor.Tensor) opregistry.Operand {
		return opregistry.Operand{Name: "w", Tensor: v, Access: opregistry.AccessWrite}
	}
	update := func(v *tensor.Tensor) opregistry.Operand {
		return opregistry.Operand{Name: "u", Tensor: v, Access: opregistry.AccessUpdate}
	}
	tests := []struct {
		name string
		give []opregistry.Operand
		want []string
	}{
		{"disjoint", []opregistry.Operand{read(x), write(y)}, nil},
		{"in place", []opregistry.Operand{read(x), write(x)}, []string{"w"}},
		{"updated", []opregistry.Operand{read(x), update(y)}, []string{"u"}},
		{"written over what another updates", []opregistry.Operand{update(x), write(x)}, []string{"u", "w"}},
		{"written twice", []opregistry.Operand{write(x), write(x)}, nil},
		{"left out", []opregistry.Operand{read(x), {Name: "w", Access: opregistry.AccessUpdate}}, nil},
		{"no operands", nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			schema := copySchema()
			schema.Operands = func(copyArgs) []opregistry.Operand { return tt.give }
			var names []string
			for _, o := range opregistry.NewOp("copy", schema).Updated(copyArgs{}) {
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
	require.EqualError(t, &opregistry.ArgError{Op: "copy", Operand: "in", Got: "nil", Want: "a tensor"}, `op "copy": argument "in": got nil, want a tensor`)
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
	op := supportOp(nil)
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
	assert.Equal(t, op.Operands(supportArgs{}), opregistry.OperandsOf(op, supportArgs{}))
}
