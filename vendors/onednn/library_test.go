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

// openedForBF16 returns oneDNN for products in bf16. A CPU with AVX-512 and without instructions
// for bf16 has them emulated, so that the results can be checked there.
func openedForBF16(t *testing.T) *handle {
	h := opened(t)
	if h.bgemm == nil {
		t.Skip("no product in bf16")
	}
	if h.isa&isaAVX512 != isaAVX512 {
		t.Skip("oneDNN has no product in bf16 for ", isaName(h.isa))
	}
	h.isa |= isaBF16
	return h
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

func TestPrimitivesNeedAVX512(t *testing.T) {
	h := openedWithPrimitives(t)
	h.isa = 0x7
	require.ErrorContains(t, h.primitivesBF16(), "uses avx2 on this machine, want avx512 or better")
	h.isa = isaAVX512
	require.NoError(t, h.primitivesBF16())
}

// productOf returns the product of a library without limits on its size.
func productOf(h *handle) blastest.Gemm {
	return func(x *opregistry.Exec, a gemm.GenericGemmArgs) error {
		return blas.Gemm(x, a, h, blas.Limits{MaxDim: math.MaxInt})
	}
}

func TestProduct(t *testing.T) {
	blastest.CheckProduct(t, "vendor.onednn", tensor.F32, productOf(opened(t)))
}

func TestProductBF16(t *testing.T) {
	blastest.CheckProduct(t, "vendor.onednn", tensor.BF16, productOf(openedForBF16(t)), flushes...)
}

func TestHammer(t *testing.T) {
	h := opened(t)
	blastest.Hammer(t, productOf(h), 128)
}

func TestSource(t *testing.T) {
	lib := New(Options{Threads: 2})
	blastest.CheckSource(t, lib.Source(), "onednn")
	assert.Regexp(t, `^oneDNN [1-9]+\.[0-9]+\.[0-9]+, .*, threads [0-9]+, /`, opened(t).Info())
	assert.Equal(t, opened(t).Version(), lib.Source().LibraryVersion())
}

func TestDeclinesSmallProducts(t *testing.T) {
	opened(t)
	lib, x := New(Options{}), opregistry.NewExec(nil, 0)
	assert.ErrorIs(t, blastest.Run(lib.Source())(x, blastest.Square(t, 127)), opregistry.ErrUnsupported)
	assert.NoError(t, blastest.Run(lib.Source())(x, blastest.Square(t, 128)))
}

func TestStatusIsAnError(t *testing.T) {
	h := opened(t)
	v := make([]float32, 4)
	p := &blas.Product{M: 2, N: 2, K: 2, Alpha: 1, Left: unsafe.Pointer(&v[0]), Right: unsafe.Pointer(&v[0]), Out: unsafe.Pointer(&v[0]), LDLeft: 1, LDRight: 2, LDOut: 2}
	err := h.SGEMM(p)
	require.ErrorContains(t, err, "onednn: dnnl_sgemm of 2×2×2: given status")
	assert.NotErrorIs(t, err, opregistry.ErrUnsupported)
}

func TestAbsentLibrary(t *testing.T) {
	lib := New(Options{Names: []string{"libprimus_absent.so.3", "libprimus_absent.so.2"}})
	err := lib.Source().Impls[0].Available()
	require.ErrorContains(t, err, "onednn: loader: ")
	require.ErrorIs(t, blastest.Run(lib.Source())(opregistry.NewExec(nil, 0), blastest.Square(t, 128)), opregistry.ErrUnsupported)
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
