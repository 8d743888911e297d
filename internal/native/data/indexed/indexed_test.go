package indexed_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/native/data/indexed"
)

func write(t *testing.T, prefix string, dtype indexed.DType, documents ...[]int32) {
	t.Helper()
	require.NoError(t, indexed.Write(prefix, dtype, false, func(w *indexed.Writer) error {
		for _, d := range documents {
			half := len(d) / 2
			if err := errors.Join(w.Add(d[:half]), w.Add(d[half:])); err != nil {
				return err
			}
			w.EndDocument()
		}
		return nil
	}))
}

// ids returns the sequences of a dataset.
func ids(t *testing.T, d *indexed.Dataset) [][]int32 {
	t.Helper()
	var all [][]int32
	for i := range d.Sequences() {
		sequence, err := d.Read([]int32{}, i)
		require.NoError(t, err)
		all = append(all, sequence)
	}
	return all
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for dtype, most := range map[indexed.DType]int32{indexed.Uint8: 255, indexed.Uint16: math.MaxUint16, indexed.Int32: math.MaxInt32} {
		prefix := filepath.Join(t.TempDir(), "set")
		want := [][]int32{{1, 2, most}, {}, {0}, {7, 7, 7, 7}}
		write(t, prefix, dtype, want...)
		for _, path := range []string{prefix, prefix + ".bin", prefix + ".idx"} {
			found, ok := indexed.Find(path)
			assert.True(t, ok)
			assert.Equal(t, prefix, found)
		}
		d, err := indexed.Open(prefix)
		require.NoError(t, err)
		assert.Equal(t, want, ids(t, d), dtype)
		assert.Equal(t, []int{4, 4, 8}, []int{d.Documents(), d.Sequences(), d.Tokens()})
		assert.Equal(t, dtype, d.DType())
		require.NoError(t, d.Close())

		err = indexed.Write(prefix, dtype, false, func(*indexed.Writer) error { return nil })
		var exists *indexed.ExistsError
		require.ErrorAs(t, err, &exists)
		require.NoError(t, indexed.Write(prefix, dtype, true, func(*indexed.Writer) error { return nil }))
		d, err = indexed.Open(prefix)
		require.NoError(t, err)
		assert.Zero(t, d.Tokens())
		require.NoError(t, d.Close())
	}
	_, found := indexed.Find(filepath.Join(t.TempDir(), "none.bin"))
	assert.False(t, found)
	assert.Equal(t, indexed.Uint16, indexed.DTypeOf(65499))
	assert.Equal(t, indexed.Int32, indexed.DTypeOf(65500))
}

func TestAWriteThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fill func(*indexed.Writer) error
		want string
	}{
		"error":         {func(*indexed.Writer) error { return errors.New("stop") }, "stop"},
		"token":         {func(w *indexed.Writer) error { return w.Add([]int32{3, 256}) }, "given the token 256, want 0 to 255"},
		"negative":      {func(w *indexed.Writer) error { return w.Add([]int32{-1}) }, "given the token -1"},
		"open document": {func(w *indexed.Writer) error { return w.Add([]int32{1, 2}) }, "the last document has 2 tokens and no end"},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "set"), indexed.Uint8, []int32{5})
		err := indexed.Write(filepath.Join(dir, "set"), indexed.Uint8, true, tt.fill)
		require.ErrorContains(t, err, tt.want, name)
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		assert.Len(t, left, 2, name)
		d, err := indexed.Open(filepath.Join(dir, "set"))
		require.NoError(t, err)
		assert.Equal(t, [][]int32{{5}}, ids(t, d), "what was there is still there")
		require.NoError(t, d.Close())
	}
	require.ErrorContains(t, indexed.Write(filepath.Join(t.TempDir(), "x"), 5, false, nil), "given tokens of int64")
}

func TestDamagedDatasets(t *testing.T) {
	t.Parallel()
	const header = 34
	for name, tt := range map[string]struct {
		idx  func([]byte) []byte
		bin  func([]byte) []byte
		want string
	}{
		"empty":           {idx: func([]byte) []byte { return nil }, want: "it has 0 bytes, want a header"},
		"magic":           {idx: put(0, 'm'), want: "byte 0: given the magic"},
		"version":         {idx: put(9, 2), want: "byte 9: given version 2, want 1"},
		"type":            {idx: put(17, 7), want: "byte 17: given tokens of float32, want uint8, uint16 or int32"},
		"unknown type":    {idx: put(17, 99), want: "dtype(99)"},
		"more sequences":  {idx: put(18, 200), want: "byte 18: given 200 sequences"},
		"fewer sequences": {idx: put(18, 1), want: "it is not whole, or damaged"},
		"huge counts":     {idx: put(25, 0xff), want: "byte 18"},
		"truncated":       {idx: func(b []byte) []byte { return b[:len(b)-1] }, want: "it has 81 bytes, want 82 for 2 sequences and 2 documents"},
		"length":          {idx: put(header+3, 0x80), want: "byte 34: given a length of -2147483645 for sequence 0"},
		"pointer":         {idx: put(header+8+8, 4), want: "byte 50: sequence 1 begins with byte 4 of the .bin, want 6"},
		"document":        {idx: put(header+24+8, 7), want: "byte 66: given sequence 7 as the end of document 1"},
		"first document":  {idx: put(header+24, 1), want: "byte 58: given sequence 1 as the end of document 0"},
		"short tokens":    {bin: func(b []byte) []byte { return b[:len(b)-2] }, want: "set.bin: it has 8 bytes, and the 2 sequences of"},
		"more tokens":     {bin: func(b []byte) []byte { return append(b, 0) }, want: "set.bin: it has 11 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prefix := filepath.Join(t.TempDir(), "set")
			write(t, prefix, indexed.Uint16, []int32{1, 2, 3}, []int32{4, 5})
			for suffix, edit := range map[string]func([]byte) []byte{".idx": tt.idx, ".bin": tt.bin} {
				if edit == nil {
					continue
				}
				b, err := os.ReadFile(prefix + suffix)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(prefix+suffix, edit(b), 0o644))
			}
			_, err := indexed.Open(prefix)
			require.ErrorContains(t, err, tt.want)
		})
	}
	prefix := filepath.Join(t.TempDir(), "set")
	write(t, prefix, indexed.Uint8, []int32{1})
	require.NoError(t, os.Remove(prefix+".bin"))
	_, err := indexed.Open(prefix)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func put(at int, v byte) func([]byte) []byte {
	return func(b []byte) []byte {
		b[at] = v
		return b
	}
}

// FuzzOpen feeds any bytes as an index: what is accepted describes tokens that lie in the .bin.
func FuzzOpen(f *testing.F) {
	dir := f.TempDir()
	bin := []byte{1, 0, 2, 0, 3, 0, 4, 0}
	err := indexed.Write(filepath.Join(dir, "set"), indexed.Uint16, false, func(w *indexed.Writer) error {
		err := w.Add([]int32{1, 2, 3, 4})
		w.EndDocument()
		return err
	})
	require.NoError(f, err)
	good, err := os.ReadFile(filepath.Join(dir, "set.idx"))
	require.NoError(f, err)
	f.Add(good)
	f.Add(good[:40])
	f.Fuzz(func(t *testing.T, idx []byte) {
		defer primustest.Measured(t, len(idx))()
		prefix := filepath.Join(t.TempDir(), "set")
		require.NoError(t, os.WriteFile(prefix+".idx", idx, 0o644))
		require.NoError(t, os.WriteFile(prefix+".bin", bin, 0o644))
		d, err := indexed.Open(prefix)
		if err != nil {
			return
		}
		total := 0
		for _, sequence := range ids(t, d) {
			total += len(sequence)
		}
		assert.Equal(t, d.Tokens(), total)
		require.NoError(t, d.Close())
	})
}

// TestMegatronReadsAndWrites compares with Megatron-LM's own reader and writer.
func TestMegatronReadsAndWrites(t *testing.T) {
	t.Parallel()
	checkout := os.Getenv("MEGATRON_CHECKOUT")
	if checkout == "" {
		t.Skip("MEGATRON_CHECKOUT does not name a checkout of Megatron-LM")
	}
	python := primustest.Python(t, "numpy", "torch")
	dir := t.TempDir()
	documents := [][]int32{{1, 2, 3}, {65499}, {4, 5, 6, 7, 8}}
	for dtype, numpy := range map[indexed.DType]string{indexed.Uint8: "uint8", indexed.Uint16: "uint16", indexed.Int32: "int32"} {
		if dtype == indexed.Uint8 {
			documents[1][0] = 255
		}
		ours, theirs := filepath.Join(dir, "ours_"+numpy), filepath.Join(dir, "theirs_"+numpy)
		write(t, ours, dtype, documents...)
		program := fmt.Sprintf(`
import builtins, importlib.util, sys, types, numpy, torch

class Anything(types.ModuleType):
    """Stands for the modules of Megatron that need more than numpy and torch; none is used."""
    def __getattr__(self, name):
        return builtins.open if name == "open" else Anything(name)
    def __call__(self, *args, **kwargs):
        return False

for name in ["megatron", "megatron.core", "megatron.core.datasets", "megatron.core.datasets.object_storage_utils",
             "megatron.core.datasets.utils_s3", "megatron.core.msc_utils", "megatron.core.utils"]:
    sys.modules[name] = Anything(name)
spec = importlib.util.spec_from_file_location("indexed_dataset", %q)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
IndexedDataset, IndexedDatasetBuilder = module.IndexedDataset, module.IndexedDatasetBuilder
ours = IndexedDataset(%q)
builder = IndexedDatasetBuilder(%q, dtype=numpy.%s)
for i in range(len(ours)):
    builder.add_document(torch.tensor(ours[i].astype(numpy.int64)), [len(ours[i])])
builder.finalize(%q)
print([d.tolist() for d in ours], ours.document_indices.tolist())
`, filepath.Join(checkout, "megatron", "core", "datasets", "indexed_dataset.py"), ours, theirs+".bin", numpy, theirs+".idx")
		cmd := exec.Command(python, "-c", program)
		out, err := cmd.Output()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			require.NoError(t, err, string(exit.Stderr))
		}
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprintf("[[1, 2, 3], [%d], [4, 5, 6, 7, 8]] [0, 1, 2, 3]\n", documents[1][0]), string(out))
		for _, suffix := range []string{".bin", ".idx"} {
			a, err := os.ReadFile(ours + suffix)
			require.NoError(t, err)
			b, err := os.ReadFile(theirs + suffix)
			require.NoError(t, err)
			assert.Equal(t, b, a, numpy+suffix)
		}
		d, err := indexed.Open(theirs)
		require.NoError(t, err)
		assert.Equal(t, documents, ids(t, d))
		require.NoError(t, d.Close())
	}
}
