package flagos_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/internal/race"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/tensor"
)

// groupedCase is a grouped product with the products of its groups.
type groupedCase struct {
	gemm.TEGeneralGroupedGemmArgs
	single []gemm.GenericGemmArgs
}

// newGroupedCase makes products of these numbers of rows, which for gradients of weights are the
// lengths of the inner axes.
func newGroupedCase(t *testing.T, d tensor.DType, rows []int, n, k int, transA, transB bool) groupedCase {
	t.Helper()
	r := rand.New(rand.NewPCG(8, 8))
	random := func(shape ...int) *tensor.Tensor {
		x, err := tensor.New(cpu.New(), d, shape...)
		require.NoError(t, err)
		values := make([]float64, x.NumElements())
		for i := range values {
			values[i] = r.NormFloat64()
		}
		require.NoError(t, x.SetFloat64s(values))
		return x
	}
	shape := func(rows, cols int, transposed bool) []int {
		if transposed {
			return []int{cols, rows}
		}
		return []int{rows, cols}
	}
	c := groupedCase{TEGeneralGroupedGemmArgs: gemm.TEGeneralGroupedGemmArgs{TransA: transA, TransB: transB, Grad: transB}}
	for _, m := range rows {
		inner := k
		if transB {
			m, inner = k, m
		}
		one := gemm.GenericGemmArgs{
			A: random(shape(inner, n, transA)...), TransA: transA, B: random(shape(m, inner, transB)...), TransB: transB,
			D: random(m, n), Grad: transB,
		}
		c.single = append(c.single, one)
		c.A, c.B, c.D = append(c.A, one.A), append(c.B, one.B), append(c.D, random(m, n))
	}
	return c
}

// Groups share workers, but each is the product that generic_gemm computes alone.
func TestGroupedGemmHasTheBitsOfEachProduct(t *testing.T) {
	single, grouped := flagosRun(t, gemm.GenericGemm), flagosRun(t, gemm.TEGeneralGroupedGemm)
	e := opregistry.NewExec(opregistry.Serial{}, 0)
	pool := parallel.New(3)
	defer pool.Close()
	rows := []int{40, 0, 3, 300, 1, 2100, 77}
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16} {
		for _, layout := range []struct {
			name           string
			transA, transB bool
		}{{"fprop", true, false}, {"dgrad", false, false}, {"wgrad", false, true}} {
			c := newGroupedCase(t, d, rows, 96, 530, layout.transA, layout.transB)
			require.NoError(t, gemm.TEGeneralGroupedGemm.Validate(c.TEGeneralGroupedGemmArgs))
			require.NoError(t, grouped(opregistry.NewExec(pool, 0), c.TEGeneralGroupedGemmArgs))
			for i, one := range c.single {
				require.NoError(t, single(e, one))
				require.Equal(t, one.D.Float64s(), c.D[i].Float64s(), "%v %s, group %d", d, layout.name, i)
			}
		}
	}
}

func TestGroupedGemmAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("under the race detector pools of memory drop what they hold")
	}
	run := flagosRun(t, gemm.TEGeneralGroupedGemm)
	c := newGroupedCase(t, tensor.F32, []int{40, 300, 9}, 96, 64, true, false)
	e := opregistry.NewExec(opregistry.Serial{}, 0)
	call := func() { require.NoError(t, run(e, c.TEGeneralGroupedGemmArgs)) }
	call()
	// The average is rounded down: a garbage collection may empty the pools once during the runs.
	assert.Zero(t, testing.AllocsPerRun(50, call))
}
