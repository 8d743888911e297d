package safetensors_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/safetensors"
	"github.com/primus-fl/primus/tensor"
)

// file puts a header and data together, without padding.
func file(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

func parse(b []byte) (*safetensors.File, error) {
	return safetensors.NewFile(context.Background(), "m.safetensors", bytes.NewReader(b), int64(len(b)))
}

func entry[T tensor.Element](t *testing.T, name string, s []T, shape ...int) safetensors.Entry {
	t.Helper()
	e, err := safetensors.FromSlice(name, s, shape...)
	require.NoError(t, err)
	return e
}

func write(t *testing.T, metadata map[string]string, entries ...safetensors.Entry) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, safetensors.Write(&b, entries, metadata))
	return b.Bytes()
}

func roundTrip[T tensor.Element](t *testing.T, s []T, shape ...int) {
	t.Helper()
	f, err := parse(write(t, nil, entry(t, "x", s, shape...)))
	require.NoError(t, err)
	got, gotShape, err := safetensors.Read[T](f, "x")
	require.NoError(t, err)
	assert.Equal(t, s, got)
	assert.Equal(t, tensor.Shape(shape), gotShape)
}

func TestEveryDTypeRoundTrips(t *testing.T) {
	t.Parallel()
	roundTrip(t, []float64{1, math.Inf(-1), math.SmallestNonzeroFloat64, 4}, 2, 2)
	roundTrip(t, []float32{1, -2, math.MaxFloat32}, 3)
	roundTrip(t, []tensor.BFloat16{1, 0x8000, 0x7f80}, 1, 3)
	roundTrip(t, []tensor.Float16{1, 2, 3}, 3)
	roundTrip(t, []tensor.Float8E4M3{1, 255}, 2)
	roundTrip(t, []tensor.Float8E5M2{1, 255, 3}, 3, 1, 1)
	roundTrip(t, []int64{math.MinInt64, 1}, 2)
	roundTrip(t, []int32{math.MinInt32, 1, 7}, 3)
	roundTrip(t, []uint8{0, 1, 255}, 3)
	roundTrip(t, []bool{true, false, true}, 3)
	roundTrip(t, []float32{}, 0, 3)
}

func TestLayoutIsAlignedSortedAndReproducible(t *testing.T) {
	t.Parallel()
	entries := []safetensors.Entry{
		entry(t, "b", []uint8{1, 2, 3}),
		entry(t, "c", []float32{1}, 1),
		entry(t, "a", []float64{1}),
	}
	b := write(t, map[string]string{"z": "1", "format": "pt"}, entries...)
	want := `{"__metadata__":{"format":"pt","z":"1"},` +
		`"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},` +
		`"b":{"dtype":"U8","shape":[3],"data_offsets":[12,15]},` +
		`"c":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}}`
	n := binary.LittleEndian.Uint64(b)
	assert.Zero(t, n%8)
	assert.Equal(t, want, strings.TrimRight(string(b[8:8+n]), " "))
	assert.Equal(t, 8+int(n)+15, len(b))

	entries[0], entries[2] = entries[2], entries[0]
	assert.Equal(t, b, write(t, map[string]string{"format": "pt", "z": "1"}, entries...))

	f, err := parse(b)
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b", "c"}, f.Names())
	assert.Equal(t, map[string]string{"format": "pt", "z": "1"}, f.Metadata())
}

func TestScalarAndUnusualNames(t *testing.T) {
	t.Parallel()
	st, err := tensor.FromSlice([]float32{7})
	require.NoError(t, err)
	scalar, err := st.Reshape()
	require.NoError(t, err)
	e, err := safetensors.FromTensor("a \"quoted\" <é>\n", scalar)
	require.NoError(t, err)
	f, err := parse(write(t, nil, e))
	require.NoError(t, err)
	info, ok := f.Info("a \"quoted\" <é>\n")
	require.True(t, ok)
	assert.Equal(t, "f32 []", info.String())
}

func TestFileWithoutTensors(t *testing.T) {
	t.Parallel()
	f, err := parse(write(t, nil))
	require.NoError(t, err)
	assert.Empty(t, f.Names())
	assert.Empty(t, f.Metadata())
}

func TestFilesThatBreakTheFormat(t *testing.T) {
	t.Parallel()
	f32 := func(name, shape, offsets string) string {
		return fmt.Sprintf(`%q:{"dtype":"F32","shape":%s,"data_offsets":%s}`, name, shape, offsets)
	}
	for _, tt := range []struct {
		name string
		give []byte
		want []string
	}{
		{"empty file", nil, []string{"0 bytes", "truncated"}},
		{"short length", []byte{1, 2, 3}, []string{"3 bytes", "at least 8"}},
		{"header beyond the file", file(`{}`, 0)[:9], []string{"a header of 2 bytes in a file of 9"}},
		{"no header", file("", 0), []string{"does not begin with {"}},
		{"leading space", file(" {}", 0), []string{"does not begin with {"}},
		{"array", file("[]", 0), []string{"does not begin with {"}},
		{"open object", file(`{"a":`, 0), []string{"not JSON"}},
		{"text after the object", file(`{}x`, 0), []string{"1 bytes after"}},
		{"two objects", file(`{}{}`, 0), []string{"2 bytes after"}},
		{"invalid UTF-8", file("{\"\xff\":1}", 0), []string{"UTF-8"}},
		{"tensor is a number", file(`{"a":1}`, 0), []string{`"a"`, "object"}},
		{"unknown dtype", file(`{"a":{"dtype":"C64","shape":[1],"data_offsets":[0,8]}}`, 8), []string{`"a"`, `"C64"`, "one of F64, F32"}},
		{"dtype is a number", file(`{"a":{"dtype":1,"shape":[1],"data_offsets":[0,8]}}`, 8), []string{"a string"}},
		{"unknown key", file(`{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":1}}`, 0), []string{`"x"`}},
		{"missing key", file(`{"a":{"dtype":"U8","shape":[0]}}`, 0), []string{"2 of the keys"}},
		{"key twice", file(`{"a":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, 0), []string{`"dtype" twice`}},
		{"tensor twice", file(`{`+f32("a", "[1]", "[0,4]")+`,`+f32("a", "[1]", "[4,8]")+`}`, 8), []string{`"a"`, "twice"}},
		{"tensor twice by an escape", file(`{`+f32("a", "[1]", "[0,4]")+`,"\u0061":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8), []string{"twice"}},
		{"metadata twice", file(`{"__metadata__":{},"__metadata__":{}}`, 0), []string{"__metadata__ twice"}},
		{"metadata key twice", file(`{"__metadata__":{"a":"1","a":"1"}}`, 0), []string{`"a" twice`}},
		{"metadata value is a number", file(`{"__metadata__":{"a":1}}`, 0), []string{"a string"}},
		{"negative axis", file(`{`+f32("a", "[-1]", "[0,4]")+`}`, 4), []string{"-1", "from 0 to"}},
		{"fraction as axis", file(`{`+f32("a", "[1.0]", "[0,4]")+`}`, 4), []string{"1.0"}},
		{"exponent as axis", file(`{`+f32("a", "[1e0]", "[0,4]")+`}`, 4), []string{"1e0"}},
		{"axis beyond 63 bits", file(`{`+f32("a", "[9223372036854775808]", "[0,4]")+`}`, 4), []string{"from 0 to 2^63-1"}},
		{"product overflows", file(`{`+f32("a", "[4294967296,4294967296]", "[0,4]")+`}`, 4), []string{"63 bits"}},
		{"product overflows to the right size", file(`{`+f32("a", "[4611686018427387905]", "[0,4]")+`}`, 4), []string{"63 bits"}},
		{"shape is a number", file(`{`+f32("a", "1", "[0,4]")+`}`, 4), []string{"shape"}},
		{"nested shape", file(`{`+f32("a", "[[1]]", "[0,4]")+`}`, 4), []string{"an integer"}},
		{"size differs from shape", file(`{`+f32("a", "[2]", "[0,4]")+`}`, 4), []string{"4 bytes", "8 bytes for f32 [2]"}},
		{"offsets reversed", file(`{`+f32("a", "[1]", "[4,0]")+`}`, 4), []string{"begin <= end"}},
		{"three offsets", file(`{`+f32("a", "[1]", "[0,4,8]")+`}`, 4), []string{"data_offsets"}},
		{"overlap", file(`{`+f32("a", "[2]", "[0,8]")+`,`+f32("b", "[1]", "[4,8]")+`}`, 8), []string{`"b"`, `overlap with tensor "a"`}},
		{"hole at the start", file(`{`+f32("a", "[1]", "[4,8]")+`}`, 8), []string{"no hole"}},
		{"hole in the middle", file(`{`+f32("a", "[1]", "[0,4]")+`,`+f32("b", "[1]", "[8,12]")+`}`, 12), []string{`"b"`, "no hole"}},
		{"truncated data", file(`{`+f32("a", "[2]", "[0,8]")+`}`, 7), []string{"7 bytes of data", "8", "truncated"}},
		{"bytes after the data", file(`{`+f32("a", "[2]", "[0,8]")+`}`, 9), []string{"9 bytes of data", "after the last tensor"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := parse(tt.give)
			var format *safetensors.FormatError
			require.ErrorAs(t, err, &format)
			assert.Equal(t, "m.safetensors", format.File)
			for _, want := range tt.want {
				assert.ErrorContains(t, err, want)
			}
		})
	}
}

func TestBoolsOtherThanZeroAndOneAreRefused(t *testing.T) {
	t.Parallel()
	b := file(`{"m":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}}`, 2)
	b[len(b)-1] = 2
	f, err := parse(b)
	require.NoError(t, err)
	_, _, err = safetensors.Read[bool](f, "m")
	assert.ErrorContains(t, err, "the byte 2 at element 1")
}

func TestReadIntoChecksDTypeShapeAndPresence(t *testing.T) {
	t.Parallel()
	f, err := parse(write(t, nil, entry(t, "w", []float32{1, 2, 3, 4, 5, 6}, 2, 3)))
	require.NoError(t, err)
	into := func(name string, s []float32, shape ...int) error {
		dst, err := tensor.FromSlice(s, shape...)
		require.NoError(t, err)
		return f.ReadInto(name, dst)
	}
	dst := make([]float32, 6)
	require.NoError(t, into("w", dst, 2, 3))
	assert.Equal(t, []float32{1, 2, 3, 4, 5, 6}, dst)

	var mismatch *safetensors.MismatchError
	require.ErrorAs(t, into("w", dst, 3, 2), &mismatch)
	assert.Equal(t, "f32 [2 3]", mismatch.Got)
	assert.Equal(t, "f32 [3 2]", mismatch.Want)
	require.ErrorAs(t, into("v", dst, 2, 3), &mismatch)
	assert.Empty(t, mismatch.Got)
	_, _, err = safetensors.Read[int32](f, "w")
	require.ErrorAs(t, err, &mismatch)
	_, err = f.Bytes("v")
	require.ErrorAs(t, err, &mismatch)

	wide, err := tensor.FromSlice(make([]float32, 6), 3, 2)
	require.NoError(t, err)
	transposed, err := wide.Transpose(0, 1)
	require.NoError(t, err)
	assert.ErrorContains(t, f.ReadInto("w", transposed), "contiguous")
	_, err = safetensors.FromTensor("w", transposed)
	assert.ErrorContains(t, err, "contiguous")
	_, err = safetensors.FromTensor("w", nil)
	assert.ErrorContains(t, err, "nil")
}

func TestWriteRefusesBadEntries(t *testing.T) {
	t.Parallel()
	a := entry(t, "a", []float32{1})
	for _, tt := range []struct {
		name     string
		give     []safetensors.Entry
		metadata map[string]string
		want     string
	}{
		{"name twice", []safetensors.Entry{a, a}, nil, `"a" was given twice`},
		{"empty name", []safetensors.Entry{entry(t, "", []uint8{1})}, nil, "not empty"},
		{"reserved name", []safetensors.Entry{entry(t, "__metadata__", []uint8{1})}, nil, "__metadata__"},
		{"invalid name", []safetensors.Entry{entry(t, "\xff", []uint8{1})}, nil, "UTF-8"},
		{"zero entry", []safetensors.Entry{{}}, nil, "given the tensor name"},
		{"invalid metadata", nil, map[string]string{"a": "\xff"}, "UTF-8"},
		{"header too long", nil, map[string]string{"a": strings.Repeat("x", safetensors.MaxHeader)}, "allows 100000000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assert.ErrorContains(t, safetensors.Write(io.Discard, tt.give, tt.metadata), tt.want)
		})
	}
}

func TestStreamMustProduceItsSize(t *testing.T) {
	t.Parallel()
	stream := func(chunks ...int) error {
		e, err := safetensors.Stream("s", tensor.I32, []int{2}, func(w io.Writer) error {
			for _, n := range chunks {
				if _, err := w.Write(make([]byte, n)); err != nil {
					return err
				}
			}
			return nil
		})
		require.NoError(t, err)
		return safetensors.Write(io.Discard, []safetensors.Entry{e}, nil)
	}
	require.NoError(t, stream(3, 5))
	assert.ErrorContains(t, stream(3, 4), "given 7 bytes from its stream, want 8")
	assert.ErrorContains(t, stream(3, 6), "1 bytes more")
	_, err := safetensors.Stream("s", tensor.I32, []int{-1}, func(io.Writer) error { return nil })
	assert.ErrorContains(t, err, "axes >= 0")
	_, err = safetensors.Stream("s", tensor.I32, nil, nil)
	assert.ErrorContains(t, err, "nil write function")
}

func TestWriteErrorsNameTheTensor(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	e, err := safetensors.Stream("s", tensor.U8, []int{1}, func(io.Writer) error { return boom })
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "m.safetensors")
	err = safetensors.WriteFile(path, []safetensors.Entry{e}, nil)
	require.ErrorIs(t, err, boom)
	assert.ErrorContains(t, err, `tensor "s"`)
	assert.NoFileExists(t, path)
}

func TestOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "m.safetensors")
	require.NoError(t, safetensors.WriteFile(path, []safetensors.Entry{entry(t, "a", []int64{1, 2})}, nil))
	f, err := safetensors.Open(t.Context(), path)
	require.NoError(t, err)
	assert.Equal(t, path, f.Name())
	data, err := f.Bytes("a")
	require.NoError(t, err)
	assert.Equal(t, byte(1), data[0])
	require.NoError(t, f.Close())
	require.NoError(t, f.Close())
	_, err = f.Bytes("a")
	require.ErrorIs(t, err, os.ErrClosed)

	_, err = safetensors.Open(t.Context(), filepath.Join(dir, "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = safetensors.Open(t.Context(), dir)
	assert.ErrorContains(t, err, "regular file")
}

func TestSection(t *testing.T) {
	t.Parallel()
	f, err := parse(write(t, nil, entry(t, "a", []int32{1, 2, 3}), entry(t, "b", []uint8{4, 5})))
	require.NoError(t, err)
	section, err := f.Section("b")
	require.NoError(t, err)
	data, err := io.ReadAll(section)
	require.NoError(t, err)
	assert.Equal(t, []byte{4, 5}, data)
	var mismatch *safetensors.MismatchError
	_, err = f.Section("c")
	require.ErrorAs(t, err, &mismatch)
}
