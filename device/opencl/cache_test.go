package opencl_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device/opencl"
	"github.com/primus-fl/primus/device/opencl/internal/cl"
)

// scaled returns what the kernel scale makes of a vector, on a backend with a cache, and whether
// the source was compiled.
func scaled(t *testing.T, cache string) (got []float64, compiled bool) {
	t.Helper()
	b := opencl.NewCachingPoCL(opencl.Options{Cache: cache})
	defer func() { require.NoError(t, b.Close()) }()
	if err := b.Usable(); err != nil {
		t.Skip(err)
	}
	b.Watch(func(fn cl.Function) { compiled = compiled || fn == cl.CreateProgramWithSource })
	k := kernelOf(t, b, 0, scale, "scale")
	t.Run("launch", func(t *testing.T) {
		x := vector(t, b, 1, 2)
		require.NoError(t, k.Launch(0, []int{2}, []int{2}, opencl.Buf(x), opencl.F32(3)))
		got = x.Float64s()
	})
	return got, compiled
}

func TestCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "primus", "opencl")
	want := []float64{3, 6}
	check := func(wantCompiled bool) string {
		t.Helper()
		got, compiled := scaled(t, dir)
		assert.Equal(t, want, got)
		assert.Equal(t, wantCompiled, compiled)
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		require.NoError(t, err)
		require.Len(t, files, 1)
		return files[0]
	}
	file := check(true)
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, file, check(false))
	damaged := append([]byte(nil), whole...)
	damaged[len(damaged)-1] ^= 1
	for name, content := range map[string][]byte{"empty": nil, "cut": whole[:len(whole)/2], "damaged": damaged, "of another format": append([]byte("x"), whole...)} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(file, content, 0o600))
			check(true)
			check(false) // the file was written anew
		})
	}
}

// A folder that cannot be written costs only the time of the compiler.
func TestCacheThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	got, compiled := scaled(t, filepath.Join(file, "cache"))
	assert.Equal(t, []float64{3, 6}, got)
	assert.True(t, compiled)
}
