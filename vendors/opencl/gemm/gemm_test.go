package gemm

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device/opencl"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/gemm/gemmtest"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/opstest/ondevice"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/opencl/internal/kernel"
	"github.com/primus-fl/primus/vendors/opencl/opencltest"
)

func TestConformance(t *testing.T) {
	opencltest.Conform(t, gemmtest.Kit(), Impls(), reference.Source(), opstest.WithDTypes(kernel.Storage...))
}

// TestShapesGiveTheSameBits runs products that fill no tile with each shape, also those that the
// device would not choose.
func TestShapesGiveTheSameBits(t *testing.T) {
	b := opencltest.Backend(t)
	rng := rand.New(rand.NewPCG(1, 2))
	random := func(shape ...int) *tensor.Tensor {
		v := make([]float32, tensor.Shape(shape).NumElements())
		for i := range v {
			v[i] = rng.Float32() - 0.5
		}
		x, err := tensor.FromSlice(v, shape...)
		require.NoError(t, err)
		return x
	}
	const m, n, k = 37, 70, 19
	for _, trans := range []bool{false, true} {
		t.Run(fmt.Sprint(trans), func(t *testing.T) {
			a := gemm.GenericGemmArgs{A: random(k, n), B: random(m, k), Bias: random(n), TransA: trans, TransB: trans, Accumulate: true, Beta: opregistry.Float(0.5)}
			if trans {
				a.A, a.B = random(n, k), random(k, m)
			}
			before := random(m, n)
			var want []float64
			for _, s := range []shape{tiles32, tiles64, panels4, panels8, panels16} {
				f := newFamily()
				f.shape = func(*opencl.Device, int, int) shape { return s }
				source := ondevice.Source(b, opregistry.Source{Impls: f.impls()}, nil)
				a.D = random(m, n)
				require.NoError(t, a.D.CopyFrom(before))
				require.NoError(t, source.Impls[0].Run.(opregistry.Func[gemm.GenericGemmArgs])(opregistry.NewExec(nil, 0), a))
				if want == nil {
					want = a.D.Float64s()
				}
				assert.Equal(t, want, a.D.Float64s(), "%+v", s)
			}
		})
	}
}

func TestOclgrind(t *testing.T) {
	opencltest.Oclgrind(t, "^(TestShapesGiveTheSameBits|TestConformance)$/^(false|true|generic_gemm)$/^vendor.opencl$/^(f32|bf16)$/^7x5x1$/^TN$/^dense$")
}
