package opencl

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/device/opencl"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/opencltest"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/opstest/ondevice"
	"github.com/primus-fl/primus/tensor"
)

// TestGemmConformance leaves f16 out, which would build half as many programs again.
func TestGemmConformance(t *testing.T) {
	opencltest.Conform(t, opscases.Gemm(), gemmImpls(), reference.Source(), opstest.WithDTypes(tensor.F32, tensor.BF16))
}

// TestShapes runs products that fill no tile with each shape that the device can run, also those
// that it would not choose. All give the same bits.
func TestShapes(t *testing.T) {
	for _, list := range []struct {
		name   string
		m, n   int
		shapes []shape
	}{
		{"least", 11, 13, []shape{leastTiles}},
		{"small", 37, 70, smallTiles},
		{"large", 131, 150, largeTiles},
		{"panels", 37, 70, slices.Concat(panels4[1:], panels8, panels16)},
	} {
		for _, dtype := range []tensor.DType{tensor.F32, tensor.BF16} {
			for _, trans := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%v/%v", list.name, dtype, trans), func(t *testing.T) {
					testShapes(t, list.shapes, list.m, list.n, dtype, trans)
				})
			}
		}
	}
}

func testShapes(t *testing.T, shapes []shape, m, n int, dtype tensor.DType, trans bool) {
	b := opencltest.Backend(t)
	d, err := b.Of(0)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 2))
	random := func(shape ...int) *tensor.Tensor {
		v := make([]float64, tensor.Shape(shape).NumElements())
		for i := range v {
			v[i] = rng.Float64() - 0.5
		}
		x, err := tensor.New(cpu.New(), dtype, shape...)
		require.NoError(t, err)
		require.NoError(t, x.SetFloat64s(v))
		return x
	}
	const k = 19
	a := gemm.GenericGemmArgs{A: random(k, n), B: random(m, k), Bias: random(n), TransA: trans, TransB: trans, Accumulate: true, Beta: opregistry.Float(0.5)}
	if trans {
		a.A, a.B = random(n, k), random(k, m)
	}
	before := random(m, n)
	with := func(s shape) []float64 {
		f := newGemmFamily()
		f.shapes.classes = func(opencl.Info, int, int) (class, []shape) { return anyProduct, []shape{s} }
		source := ondevice.Source(b, opregistry.Source{Impls: f.impls()}, nil)
		a.D = random(m, n)
		require.NoError(t, a.D.CopyFrom(before))
		require.NoError(t, source.Impls[0].Run.(opregistry.Func[gemm.GenericGemmArgs])(opregistry.NewExec(nil, 0), a))
		return a.D.Float64s()
	}
	want := with(panels4[0])
	for _, s := range shapes {
		t.Run(s.String(), func(t *testing.T) {
			if !s.panels() && !s.runsOn(d.Info()) {
				t.Skipf("%v has work-groups of at most %d and %d bytes of local memory", d.Device(), d.Info().MaxWorkGroup, d.Info().LocalMemory)
			}
			assert.Equal(t, want, with(s))
		})
	}
}

// chosenIn multiplies in a process of its own, as far as choices go, with a cache in a folder. The
// second shape is the fastest. It returns how often shapes were measured and which one was taken.
func chosenIn(t *testing.T, folder string, size int, accumulate bool) (measured int, taken shape) {
	t.Helper()
	b := opencl.New(opencl.Options{Cache: folder})
	if err := b.Usable(); err != nil {
		t.Skipf("there is no OpenCL device: %v", err)
	}
	a := gemm.GenericGemmArgs{Accumulate: accumulate}
	defer func() {
		for _, x := range []*tensor.Tensor{a.A, a.B, a.D} {
			require.NoError(t, x.Release())
		}
		require.NoError(t, b.Close())
	}()
	f := newGemmFamily()
	f.shapes.classes = func(opencl.Info, int, int) (class, []shape) { return anyProduct, []shape{panels4[0], smallTiles[0]} }
	f.shapes.measure = func(p *product, s shape, m, n, k int) (time.Duration, error) {
		measured++
		if s == smallTiles[0] {
			return time.Second, nil
		}
		return time.Minute, nil
	}
	for _, x := range []**tensor.Tensor{&a.A, &a.B, &a.D} {
		var err error
		*x, err = tensor.New(b, tensor.F32, size, size)
		require.NoError(t, err)
	}
	for range 2 {
		require.NoError(t, f.genericGemm(opregistry.NewExec(nil, 0), a))
	}
	require.Len(t, f.shapes.chosen, 1)
	for _, c := range f.shapes.chosen {
		taken = c.shape
	}
	return measured, taken
}

// The first large product chooses a shape, which later processes take as well.
func TestChoice(t *testing.T) {
	folder := t.TempDir()
	check := func(name string, size int, accumulate bool, wantMeasured int, want shape) {
		t.Helper()
		measured, taken := chosenIn(t, folder, size, accumulate)
		assert.Equal(t, wantMeasured, measured, name)
		assert.Equal(t, want, taken, name)
	}
	check("too small to measure", 8, false, 0, panels4[0])
	check("adds to D", 256, true, 0, panels4[0])
	check("measured", 256, false, 2, smallTiles[0])
	check("kept", 256, false, 0, smallTiles[0])
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	for name, content := range map[string]string{"empty": "", "cut": "{", "null": "null", "a shape of another version": `{"` + newGemmFamily().program.Label() + `, products": "x"}`} {
		require.NoError(t, os.WriteFile(files[0], []byte(content), 0o600))
		check(name, 256, false, 2, smallTiles[0])
	}
}

// A measurement runs the product and leaves its result.
func TestMeasure(t *testing.T) {
	b := opencltest.Backend(t)
	f := newGemmFamily()
	x := func(v ...float32) *tensor.Tensor {
		host, err := tensor.FromSlice(v, 2, 2)
		require.NoError(t, err)
		one, err := tensor.New(b, tensor.F32, 2, 2)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, one.Release()) })
		require.NoError(t, one.CopyFrom(host))
		return one
	}
	a := gemm.GenericGemmArgs{A: x(1, 2, 3, 4), B: x(1, 0, 0, 1), D: x(9, 9, 9, 9)}
	p, err := f.view(opregistry.NewExec(nil, 0), a)
	require.NoError(t, err)
	p.variant = gemmVariant{a: tensor.F32, b: tensor.F32, d: tensor.F32, bias: tensor.F32}
	for _, s := range []shape{panels4[0], smallTiles[0]} {
		took, err := p.measure(s, 2, 2, 2)
		require.NoError(t, err)
		assert.Positive(t, took)
		assert.Equal(t, []float64{1, 2, 3, 4}, a.D.Float64s())
	}
}

// Every device has a shape, and only those that it can run.
func TestClasses(t *testing.T) {
	for name, info := range map[string]opencl.Info{
		"cpu": {Kind: "cpu", VectorF32: 8}, "gpu": {Kind: "gpu", ComputeUnits: 100, MaxWorkGroup: 1024, LocalMemory: 48 << 10},
		"small": {Kind: "gpu", ComputeUnits: 1, MaxWorkGroup: 64, LocalMemory: 8 << 10}, "tiny": {Kind: "accelerator", MaxWorkGroup: 16, LocalMemory: 1 << 10},
	} {
		for _, n := range []int{1, 4096} {
			_, shapes := classOf(info, n, n)
			require.NotEmpty(t, shapes, name)
			names := map[string]bool{}
			for _, s := range shapes {
				assert.True(t, s.panels() || s.runsOn(info), "%s: %v", name, s)
				names[s.String()] = true
			}
			assert.Len(t, names, len(shapes), name)
		}
	}
}

func TestGemmOclgrind(t *testing.T) {
	opencltest.Oclgrind(t, "^(TestShapes|TestGemmConformance)$/^(least|generic_gemm)$/^(vendor.opencl|f32)$/^(f32|bf16|true)$/^(7x5x1|tiles_of_8×8,_2×2_each)$/^TN$/^dense$")
}
