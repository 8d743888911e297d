package onednn

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/internal/blas"
	"github.com/primus-fl/primus/vendors/internal/blas/blastest"
	"github.com/primus-fl/primus/vendors/loader"
)

// opened returns oneDNN, or skips the test with the reason.
func opened(t *testing.T) *handle {
	t.Helper()
	h, err := open(Options{Threads: 2})
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(h.fixed.Close)
	return h
}

func TestDifferential(t *testing.T) {
	h := opened(t)
	all := func(x *opregistry.Exec, a gemm.GenericGemmArgs) error {
		return blas.Gemm(x, a, h, blas.Limits{MaxDim: math.MaxInt})
	}
	t.Run("small", func(t *testing.T) { blastest.Differential(t, all, 300, 1) })
	t.Run("on several threads", func(t *testing.T) { blastest.Differential(t, all, 12, 150) })
}

// openedForBF16 returns oneDNN for products in bf16. A CPU without instructions for bf16 has them
// emulated, so that the results can be checked on any CPU.
func openedForBF16(t *testing.T) *handle {
	h := opened(t)
	if h.bgemm == nil {
		t.Skip("no product in bf16")
	}
	h.isa |= isaBF16
	return h
}

func TestDifferentialBF16(t *testing.T) {
	h := openedForBF16(t)
	all := func(x *opregistry.Exec, a gemm.GenericGemmArgs) error {
		return blas.Gemm(x, a, h, blas.Limits{MaxDim: math.MaxInt})
	}
	t.Run("small", func(t *testing.T) { blastest.DifferentialBF16(t, all, 300, 1) })
	t.Run("on several threads", func(t *testing.T) { blastest.DifferentialBF16(t, all, 12, 150) })
}

func TestConformanceBF16(t *testing.T) {
	h := openedForBF16(t)
	all := func(x *opregistry.Exec, a gemm.GenericGemmArgs) error {
		return blas.Gemm(x, a, h, blas.Limits{MaxDim: math.MaxInt})
	}
	opscases.All().Run(t, blastest.Unlimited("vendor.onednn", all), blastest.Oracle(), opstest.WithDTypes(tensor.BF16))
}

func TestBF16IsDeclinedWhereItIsSlow(t *testing.T) {
	h := opened(t)
	h.isa = 0x67
	assert.ErrorIs(t, h.BF16(), opregistry.ErrUnsupported)
	assert.ErrorContains(t, h.BF16(), "avx512 vnni")
	h.isa = 0x7ff
	assert.NoError(t, h.BF16())
	h.bgemm = nil
	assert.ErrorIs(t, h.BF16(), opregistry.ErrUnsupported)
}

func TestConformance(t *testing.T) {
	h := opened(t)
	all := func(x *opregistry.Exec, a gemm.GenericGemmArgs) error {
		return blas.Gemm(x, a, h, blas.Limits{MaxDim: math.MaxInt})
	}
	opscases.All().Run(t, blastest.Unlimited("vendor.onednn", all), blastest.Oracle(), opstest.WithDTypes(tensor.F32))
}

func TestHammer(t *testing.T) {
	h := opened(t)
	blastest.Hammer(t, func(x *opregistry.Exec, a gemm.GenericGemmArgs) error {
		return blas.Gemm(x, a, h, blas.Limits{MaxDim: math.MaxInt})
	}, 128)
}

func TestSource(t *testing.T) {
	lib := New(Options{Threads: 2})
	reg := opregistry.NewRegistry()
	require.NoError(t, reg.Register(lib.Source()))
	i, ok := reg.Snapshot().Index("generic_gemm")
	require.True(t, ok)
	impl := reg.Snapshot().Impls(i)[0]
	assert.Equal(t, "vendor.onednn", impl.ID)
	assert.Equal(t, "onednn", impl.Vendor)
	assert.Equal(t, "onednn", impl.Source)
	assert.Equal(t, opregistry.KindVendor, impl.Kind)
	assert.Equal(t, 100, impl.Priority)
	if err := impl.Available(); err != nil {
		t.Skip(err)
	}
	assert.Regexp(t, `^oneDNN [1-9]+\.[0-9]+\.[0-9]+, .*, threads [0-9]+, /`, opened(t).Info())
}

func gemmOf(l *Library) opregistry.Func[gemm.GenericGemmArgs] {
	return l.Source().Impls[0].Run.(opregistry.Func[gemm.GenericGemmArgs])
}

func gemmArgs(t *testing.T, n int) gemm.GenericGemmArgs {
	matrix := func() *tensor.Tensor {
		v, err := tensor.FromSlice(make([]float32, n*n), n, n)
		require.NoError(t, err)
		return v
	}
	return gemm.GenericGemmArgs{A: matrix(), B: matrix(), D: matrix()}
}

func TestDeclinesSmallProducts(t *testing.T) {
	opened(t)
	lib, x := New(Options{}), opregistry.NewExec(nil, 0)
	assert.ErrorIs(t, gemmOf(lib)(x, gemmArgs(t, 127)), opregistry.ErrUnsupported)
	assert.NoError(t, gemmOf(lib)(x, gemmArgs(t, 128)))
}

func TestStatusIsAnError(t *testing.T) {
	h := opened(t)
	v := make([]float32, 4)
	p := &blas.Product{M: 2, N: 2, K: 2, Alpha: 1, Left: unsafe.Pointer(&v[0]), Right: unsafe.Pointer(&v[0]), Out: unsafe.Pointer(&v[0]), LDLeft: 1, LDRight: 2, LDOut: 2}
	err := h.SGEMM(p)
	require.ErrorContains(t, err, "onednn: dnnl_sgemm of 2×2×2: got status")
	assert.NotErrorIs(t, err, opregistry.ErrUnsupported)
}

func TestAbsentLibrary(t *testing.T) {
	lib := New(Options{Names: []string{"libprimus_absent.so.3", "libprimus_absent.so.2"}})
	err := lib.Source().Impls[0].Available()
	require.ErrorContains(t, err, "onednn: loader: ")
	require.ErrorIs(t, gemmOf(lib)(opregistry.NewExec(nil, 0), gemmArgs(t, 128)), opregistry.ErrUnsupported)
}

func TestForeignLibrary(t *testing.T) {
	_, err := open(Options{Names: []string{"libm.so.6", "libSystem.B.dylib"}})
	if errors.Is(err, loader.ErrPlatform) {
		t.Skip(err)
	}
	require.ErrorContains(t, err, "is not oneDNN")
	assert.ErrorContains(t, err, `"dnnl_sgemm"`)
}

func TestIsaName(t *testing.T) {
	tests := map[int32]string{0: "isa 0", 1: "sse4.1", 0x7: "avx2", 0xf: "avx2", 0x27: "avx512", 0xe7: "avx512 bf16", 0x7ff: "avx512 fp16"}
	for mask, want := range tests {
		assert.Equal(t, want, isaName(mask))
	}
}

func TestThreadsOfUserWin(t *testing.T) {
	opened(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestChild$", "-test.v")
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "OMP_") {
			cmd.Env = append(cmd.Env, e)
		}
	}
	cmd.Env = append(cmd.Env, "PRIMUS_ONEDNN_CHILD=1", "OMP_NUM_THREADS=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "threads 1")
}

func TestChild(t *testing.T) {
	if os.Getenv("PRIMUS_ONEDNN_CHILD") == "" {
		t.Skip("runs only as the child of another test")
	}
	t.Log("info: ", opened(t).Info())
}
