package tensor_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/tensor"
)

func TestDTypeText(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, d := range tensor.DTypes() {
		text, err := d.MarshalText()
		require.NoError(t, err)
		assert.Equal(t, d.String(), string(text))
		assert.False(t, seen[d.String()], "%v is the name of one type", d)
		seen[d.String()] = true

		var back tensor.DType
		require.NoError(t, back.UnmarshalText(text))
		assert.Equal(t, d, back)
		parsed, err := tensor.ParseDType(strings.ToUpper(d.String()))
		require.NoError(t, err)
		assert.Equal(t, d, parsed)
		assert.True(t, d.Valid())
	}
	assert.Len(t, seen, 11)

	got, err := json.Marshal(map[string]tensor.DType{"dtype": tensor.BF16})
	require.NoError(t, err)
	assert.JSONEq(t, `{"dtype":"bf16"}`, string(got))
}

func TestDTypeInvalid(t *testing.T) {
	t.Parallel()
	for _, d := range []tensor.DType{tensor.Unspecified, tensor.Bool + 1, 255} {
		assert.False(t, d.Valid())
		assert.False(t, d.IsFloat())
		assert.Zero(t, d.Size())
		assert.Zero(t, d.DLPack())
		assert.NotEmpty(t, d.String())
		_, err := d.MarshalText()
		var e *tensor.Error
		require.ErrorAs(t, err, &e)
		assert.Equal(t, d.String(), e.Got)
	}
	for _, s := range []string{"", "unspecified", "f33", "float32", "f32 "} {
		d := tensor.F32
		require.Error(t, d.UnmarshalText([]byte(s)), s)
		assert.Equal(t, tensor.F32, d, "an error leaves the value alone")
	}
	_, err := tensor.ParseDType("f33")
	assert.EqualError(t, err, `tensor: ParseDType: given "f33", want one of f64, f32, bf16, f16, f8e4m3, f8e5m2, i64, i32, i16, u8, bool`)
}

func TestDTypeOf(t *testing.T) {
	t.Parallel()
	got := []tensor.DType{
		tensor.DTypeOf[float64](), tensor.DTypeOf[float32](), tensor.DTypeOf[tensor.BFloat16](), tensor.DTypeOf[tensor.Float16](),
		tensor.DTypeOf[tensor.Float8E4M3](), tensor.DTypeOf[tensor.Float8E5M2](), tensor.DTypeOf[int64](), tensor.DTypeOf[int32](),
		tensor.DTypeOf[int16](), tensor.DTypeOf[uint8](), tensor.DTypeOf[bool](),
	}
	assert.Equal(t, tensor.DTypes(), got)
}
