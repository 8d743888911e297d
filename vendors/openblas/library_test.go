package openblas

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/internal/blas"
	"github.com/primus-fl/primus/vendors/internal/blas/blastest"
	"github.com/primus-fl/primus/vendors/loader"
)

// opened returns OpenBLAS, or skips the test with the reason.
func opened(t testing.TB) *handle {
	t.Helper()
	h, err := open(Options{Threads: 2})
	if err != nil {
		t.Skip(err)
	}
	return h
}

// productOf returns the product of a library without limits on its size.
func productOf(h *handle) blastest.Gemm {
	return func(x *opregistry.Exec, a gemm.GenericGemmArgs) error {
		return blas.Gemm(x, a, h, blas.Limits{MaxDim: math.MaxInt32})
	}
}

func TestProduct(t *testing.T) {
	blastest.CheckProduct(t, "vendor.openblas", tensor.F32, productOf(opened(t)))
}

func TestHammer(t *testing.T) {
	opened(t)
	blastest.Hammer(t, blastest.Run(New(Options{Threads: 2}).Source()), 64)
}

func TestSource(t *testing.T) {
	lib := New(Options{Threads: 2})
	blastest.CheckSource(t, lib.Source(), "openblas")
	assert.Contains(t, lib.Info(), "OpenBLAS 0.")
	assert.Regexp(t, `^0\.[0-9]+`, lib.Source().LibraryVersion())
}

func TestDeclinesSmallProducts(t *testing.T) {
	opened(t)
	lib, x := New(Options{}), opregistry.NewExec(nil, 0)
	assert.ErrorIs(t, blastest.Run(lib.Source())(x, blastest.Square(t, 31)), opregistry.ErrUnsupported)
	assert.NoError(t, blastest.Run(lib.Source())(x, blastest.Square(t, 32)))
}

func TestDoesNotAllocate(t *testing.T) {
	opened(t)
	run, x, a := blastest.Run(New(Options{}).Source()), opregistry.NewExec(nil, 0), blastest.Square(t, 32)
	assert.Less(t, testing.AllocsPerRun(100, func() { _ = run(x, a) }), 1.0)
}

func TestAbsentLibrary(t *testing.T) {
	lib := New(Options{Names: []string{"libprimus_absent.so.0", "libprimus_absent.so"}})
	err := lib.Source().Impls[0].Available()
	require.ErrorContains(t, err, "openblas: loader: ")
	assert.Contains(t, lib.Info(), "not available: openblas: ")
	assert.Empty(t, lib.Source().LibraryVersion())
	require.ErrorIs(t, blastest.Run(lib.Source())(opregistry.NewExec(nil, 0), blastest.Square(t, 32)), opregistry.ErrUnsupported)
}

func TestForeignLibrary(t *testing.T) {
	_, err := open(Options{Names: []string{"libm.so.6", "libSystem.B.dylib"}})
	if errors.Is(err, loader.ErrPlatform) {
		t.Skip(err)
	}
	assert.ErrorContains(t, err, `"sgemm_"`)
}

// inProcess runs this test alone in a process with these variables and returns what its child
// branch prints, because OpenBLAS is loaded once per process.
func inProcess(t *testing.T, env ...string) string {
	t.Helper()
	opened(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestChild$", "-test.v")
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "OPENBLAS_") && !strings.HasPrefix(e, "OMP_") {
			cmd.Env = append(cmd.Env, e)
		}
	}
	cmd.Env = append(append(cmd.Env, "PRIMUS_OPENBLAS_CHILD=1"), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

func TestChild(t *testing.T) {
	if os.Getenv("PRIMUS_OPENBLAS_CHILD") == "" {
		t.Skip("runs only as the child of another test")
	}
	t.Log("info: ", New(Options{}).Info())
}

func TestCoreType(t *testing.T) {
	if cpuGeneration() < avx2 {
		t.Skip("every core type is right for this CPU")
	}
	byDefault := inProcess(t)
	assert.NotContains(t, byDefault, "warning")
	if cpuGeneration() == avx512 {
		assert.Contains(t, byDefault, "core SkylakeX")
	}
	byUser := inProcess(t, "OPENBLAS_CORETYPE=Prescott")
	assert.Contains(t, byUser, "core Prescott")
	assert.Contains(t, byUser, "warning: core Prescott is older than this CPU")
}

func TestThreadsOfUserWin(t *testing.T) {
	assert.Contains(t, inProcess(t, "OPENBLAS_NUM_THREADS=1"), "threads 1")
	assert.Contains(t, inProcess(t, "OMP_NUM_THREADS=1"), "threads 1")
}
