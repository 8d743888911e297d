package export_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/native/weights/export"
	"github.com/primus-fl/primus/tensor"
)

// Programs that read the files are in the tests of package export; here are the bytes of a small
// one.
func TestWrite(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	err := export.Write(&b, []export.Value{{"a", uint32(7)}, {"b", []string{"x", ""}}, {"c", true}}, []export.Tensor{
		{Name: "m", Type: export.F16, Shape: tensor.Shape{3, 1}, Write: func(w io.Writer) error {
			_, err := w.Write([]byte{1, 2, 3, 4, 5, 6})
			return err
		}},
		{Name: "v", Type: export.F32, Shape: tensor.Shape{1}, Write: func(w io.Writer) error {
			_, err := w.Write([]byte{7, 8, 9, 10})
			return err
		}},
	})
	require.NoError(t, err)
	u64 := func(v uint64) string { return string(binary.LittleEndian.AppendUint64(nil, v)) }
	u32 := func(v uint32) string { return string(binary.LittleEndian.AppendUint32(nil, v)) }
	head := "GGUF" + u32(3) + u64(2) + u64(3) +
		u64(1) + "a" + u32(4) + u32(7) +
		u64(1) + "b" + u32(9) + u32(8) + u64(2) + u64(1) + "x" + u64(0) +
		u64(1) + "c" + u32(7) + "\x01" +
		u64(1) + "m" + u32(2) + u64(1) + u64(3) + u32(1) + u64(0) +
		u64(1) + "v" + u32(1) + u64(1) + u32(0) + u64(32)
	zeros := string(make([]byte, 32))
	want := head + zeros[:(32-len(head)%32)%32] + "\x01\x02\x03\x04\x05\x06" + zeros[:26] + "\x07\x08\x09\x0a" + zeros[:28]
	assert.Equal(t, want, b.String())
}

func TestWriteRefuses(t *testing.T) {
	t.Parallel()
	empty := func(io.Writer) error { return nil }
	for want, file := range map[string]struct {
		value  any
		tensor export.Tensor
	}{
		"a: given a value of type int":              {1, export.Tensor{}},
		`tensor "t": given 0 bytes, want 8`:         {true, export.Tensor{Name: "t", Type: export.F32, Shape: tensor.Shape{2}, Write: empty}},
		"want rows of a multiple of 32 elements":    {true, export.Tensor{Name: "t", Type: export.Q8_0, Shape: tensor.Shape{2, 16}, Write: empty}},
		"given [2] of type(77), want rows of a mul": {true, export.Tensor{Name: "t", Type: 77, Shape: tensor.Shape{2}, Write: empty}},
	} {
		assert.ErrorContains(t, export.Write(io.Discard, []export.Value{{"a", file.value}}, []export.Tensor{file.tensor}), want)
	}
}

func TestAppendQ8(t *testing.T) {
	t.Parallel()
	values := make([]float32, 64)
	for i := range values[:32] {
		values[i] = float32(i-16) / 8
	}
	got, err := export.AppendQ8(nil, values)
	require.NoError(t, err)
	require.Len(t, got, 2*34)
	scale := tensor.Float16(binary.LittleEndian.Uint16(got)).Float32()
	for i, v := range values[:32] {
		assert.InDelta(t, v, scale*float32(int8(got[2+i])), float64(scale)*0.51, "element %d", i)
	}
	assert.Equal(t, make([]byte, 34), got[34:], "a block of zeros")
	values[3] = 1e7
	_, err = export.AppendQ8(nil, values)
	assert.ErrorContains(t, err, "cannot hold", "the scale 78740 is beyond f16")
	values[3] = float32(math.Inf(1))
	_, err = export.AppendQ8(nil, values)
	assert.ErrorContains(t, err, "cannot hold")
}
