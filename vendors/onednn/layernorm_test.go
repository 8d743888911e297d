package onednn

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

func forwardOracle(_ *opregistry.Exec, a norm.LayerNormFwdArgs) error {
	x, g, cols := a.Input.Float64s(), gain(a.Weight, a.ZeroCenteredGamma), a.Input.Shape().Cols()
	bias := make([]float64, cols)
	if a.Bias != nil {
		bias = a.Bias.Float64s()
	}
	mu, rsigma := make([]float64, len(x)/cols), make([]float64, len(x)/cols)
	for r := range mu {
		row := x[r*cols : (r+1)*cols]
		for _, v := range row {
			mu[r] += v / float64(cols)
		}
		variance := 0.0
		for _, v := range row {
			variance += (v - mu[r]) * (v - mu[r]) / float64(cols)
		}
		rsigma[r] = 1 / math.Sqrt(variance+float64(a.Eps))
		for j, v := range row {
			row[j] = (v-mu[r])*rsigma[r]*g[j] + bias[j]
		}
	}
	return set(a.Output, x, a.Mu, mu, a.RSigma, rsigma)
}

func backwardOracle(_ *opregistry.Exec, a norm.LayerNormBwdArgs) error {
	x, dz, g, cols := a.X.Float64s(), a.DZ.Float64s(), gain(a.Gamma, a.ZeroCenteredGamma), a.X.Shape().Cols()
	mu, rsigma := a.Mu.Float64s(), a.RSigma.Float64s()
	dgamma, dbeta := make([]float64, cols), make([]float64, cols)
	for r := range mu {
		mean, slope := 0.0, 0.0
		for j := range cols {
			at := r*cols + j
			x[at] = (x[at] - mu[r]) * rsigma[r]
			dgamma[j] += dz[at] * x[at]
			dbeta[j] += dz[at]
			dz[at] *= g[j]
			mean += dz[at] / float64(cols)
			slope += dz[at] * x[at] / float64(cols)
		}
		for at := r * cols; at < (r+1)*cols; at++ {
			x[at] = rsigma[r] * (dz[at] - mean - x[at]*slope)
		}
	}
	return set(a.DX, x, a.DGamma, dgamma, a.DBeta, dbeta)
}

// gain returns γ, or γ+1.
func gain(gamma *tensor.Tensor, zeroCentered bool) []float64 {
	g := gamma.Float64s()
	for i := range g {
		if zeroCentered {
			g[i]++
		}
	}
	return g
}

// set fills tensors with the values that follow each of them; a nil tensor is left out.
func set(all ...any) error {
	for i := 0; i < len(all); i += 2 {
		if t := all[i].(*tensor.Tensor); t != nil {
			if err := t.SetFloat64s(all[i+1].([]float64)); err != nil {
				return err
			}
		}
	}
	return nil
}

func TestLayerNormConformance(t *testing.T) {
	h := openedWithPrimitives(t)
	dtypes := opstest.WithDTypes(tensor.F32, tensor.BF16)
	serve := opstest.MustServe(tensor.F32)
	opscases.All().Run(t, unlimited(h, norm.LayerNormFwd, (*handle).layerNormForward), oracle(norm.LayerNormFwd, forwardOracle), dtypes, serve)
	opscases.All().Run(t, unlimited(h, norm.LayerNormBwd, (*handle).layerNormBackward), oracle(norm.LayerNormBwd, backwardOracle), dtypes, serve, opstest.Irreproducible())
}

// normCall is a forward and a backward call of one shape.
type normCall struct {
	forward  norm.LayerNormFwdArgs
	backward norm.LayerNormBwdArgs
}

// newNormCall makes operands; equal seeds make equal operands.
func newNormCall(t testing.TB, seed uint64, d tensor.DType, rows, cols int) normCall {
	r, next := rand.New(rand.NewPCG(seed, 1)), seed<<8
	of := func(d tensor.DType, shape ...int) *tensor.Tensor {
		next++
		return tensortest.Random(t, next, d, shape...)
	}
	weights := func() tensor.DType { return []tensor.DType{d, tensor.F32}[r.IntN(2)] }
	var c normCall
	c.forward = norm.LayerNormFwdArgs{
		Input: of(d, rows, cols), Weight: of(weights(), cols), Bias: of(weights(), cols), Output: of(d, rows, cols),
		Mu: of(tensor.F32, rows), RSigma: of(tensor.F32, rows), Eps: 1e-5, ZeroCenteredGamma: r.IntN(2) == 0, Saved: new(opregistry.Saved),
	}
	c.backward = norm.LayerNormBwdArgs{
		DZ: of(d, rows, cols), X: c.forward.Input, Mu: c.forward.Mu, RSigma: c.forward.RSigma, Gamma: c.forward.Weight,
		DX: of(d, rows, cols), DGamma: of(weights(), cols), DBeta: of(weights(), cols), ZeroCenteredGamma: c.forward.ZeroCenteredGamma,
		Saved: c.forward.Saved,
	}
	switch r.IntN(4) {
	case 0:
		c.forward.Bias, c.backward.DBeta = nil, nil
	case 1:
		c.forward.Output, c.backward.DX = c.forward.Input, c.backward.DZ
		c.backward.X = of(d, rows, cols)
	}
	return c
}

func (c *normCall) run(x *opregistry.Exec, forward opregistry.Func[norm.LayerNormFwdArgs], backward opregistry.Func[norm.LayerNormBwdArgs]) error {
	if err := forward(x, c.forward); err != nil {
		return err
	}
	return backward(x, c.backward)
}

// results returns the operands that the calls write.
func (c *normCall) results() map[string]*tensor.Tensor {
	return map[string]*tensor.Tensor{
		"y": c.forward.Output, "mu": c.forward.Mu, "rsigma": c.forward.RSigma,
		"dx": c.backward.DX, "dgamma": c.backward.DGamma, "dbeta": c.backward.DBeta,
	}
}

// compare checks the results of a call against those of the oracle.
func (c *normCall) compare(t *testing.T, seed uint64) {
	t.Helper()
	want := newNormCall(t, seed, c.forward.Input.DType(), c.forward.Input.Shape()[0], c.forward.Input.Shape()[1])
	require.NoError(t, want.run(nil, forwardOracle, backwardOracle))
	for name, got := range c.results() {
		tolerance := norm.LayerNormFwd.Tolerance()
		if name[0] == 'd' {
			tolerance = norm.LayerNormBwd.Tolerance()
		}
		if got != nil {
			tensortest.Close(t, want.results()[name], got, tolerance.Of(got.DType()))
		}
	}
}

func TestLayerNormDifferential(t *testing.T) {
	h := openedWithPrimitives(t)
	x := opregistry.NewExec(nil, 0)
	for _, d := range dtypes(t, h) {
		t.Run(d.String(), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(d), 2))
			for seed := range uint64(40) {
				rows, cols := 1+r.IntN(70), 1+r.IntN(300)
				if seed%20 == 0 {
					rows, cols = 100+r.IntN(150), 500+r.IntN(400)
				}
				c := newNormCall(t, seed, d, rows, cols)
				require.NoError(t, c.run(x, h.layerNormForward, h.layerNormBackward))
				c.compare(t, seed)
			}
			require.LessOrEqual(t, kept(h), maxKept*cap(h.lanes))
		})
	}
}

// Rows whose squares have no f32 are normalised as others are.
func TestLayerNormOfLargeRows(t *testing.T) {
	h := openedWithPrimitives(t)
	x := opregistry.NewExec(nil, 0)
	served := 0
	for _, d := range dtypes(t, h) {
		for seed := range uint64(12) {
			large := func() normCall {
				c := newNormCall(t, seed, d, 5, 300)
				for i, in := range []*tensor.Tensor{c.forward.Input, c.backward.X} {
					if i == 1 && in == c.forward.Input {
						break
					}
					v := in.Float64s()
					for i := range v[300:900] {
						v[300+i] *= math.Pow(10, 18+float64(i%13))
					}
					require.NoError(t, in.SetFloat64s(v))
				}
				return c
			}
			got, want := large(), large()
			err := got.run(x, h.layerNormForward, h.layerNormBackward)
			if errors.Is(err, opregistry.ErrUnsupported) {
				require.Same(t, got.forward.Input, got.forward.Output)
				continue
			}
			served++
			require.NoError(t, err)
			require.NoError(t, want.run(nil, forwardOracle, backwardOracle))
			for name, result := range got.results() {
				if result != nil {
					tol := norm.LayerNormBwd.Tolerance().Of(result.DType())
					tol.Abs = max(tol.Abs, 1e-4)
					tensortest.Close(t, want.results()[name], result, tol)
				}
			}
		}
	}
	require.Positive(t, served)
}

func TestNormsAtOnce(t *testing.T) {
	const goroutines, callsEach, runtimeThreads = 8, 25, 4
	h := openedWithPrimitives(t)
	x := opregistry.NewExec(nil, 0)
	var calls []normCall
	var seeds []uint64
	served := dtypes(t, h)
	for seed := uint64(0); len(calls) < goroutines; seed++ {
		c := newNormCall(t, seed, served[seed%uint64(len(served))], 64+int(seed%3), 512)
		if c.forward.Output != c.forward.Input { // the call can be repeated
			calls, seeds = append(calls, c), append(seeds, seed)
		}
	}
	require.NoError(t, calls[0].run(x, h.layerNormForward, h.layerNormBackward))
	threads := osThreads(t)
	var wg sync.WaitGroup
	failed := make([]error, goroutines)
	for i := range calls {
		wg.Go(func() {
			for range callsEach {
				failed[i] = errors.Join(failed[i], calls[i].run(x, h.layerNormForward, h.layerNormBackward))
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(failed...))
	require.LessOrEqual(t, osThreads(t), threads+runtime.NumCPU()+runtimeThreads)
	for i := range calls {
		calls[i].compare(t, seeds[i])
	}
}

// osThreads counts the threads of the process; 0 where the system does not report them.
func osThreads(t *testing.T) int {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Logf("threads are not counted: %v", err)
	}
	return len(tasks)
}

func TestNormsDecline(t *testing.T) {
	h := openedWithPrimitives(t)
	x := opregistry.NewExec(nil, 0)
	tests := []struct {
		name   string
		change func(c *normCall)
		want   string
	}{
		{"f16", func(c *normCall) { *c = newNormCall(t, 2, tensor.F16, 4, 8) }, "given input of dtype f16, want f32 or bf16"},
		{"output of another dtype", func(c *normCall) { c.forward.Output = tensortest.Random(t, 1, tensor.BF16, 4, 8) },
			"given output of dtype bf16, want that of input, f32"},
		{"bias of f64", func(c *normCall) { c.forward.Bias = tensortest.Random(t, 1, tensor.F64, 8) }, "given bias of dtype f64, want f32 or bf16"},
		{"rows apart", func(c *normCall) {
			apart, err := tensortest.Random(t, 1, tensor.F32, 4, 9).Slice(1, 0, 8)
			require.NoError(t, err)
			c.forward.Input = apart
		}, "given input with strides [9 1], want it contiguous"},
		{"dtype of dx", func(c *normCall) { c.backward.DX = tensortest.Random(t, 1, tensor.BF16, 4, 8) }, "given dx of dtype bf16, want that of x, f32"},
		{"dgamma of f64", func(c *normCall) { c.backward.DGamma = tensortest.Random(t, 1, tensor.F64, 8) }, "given dgamma of dtype f64"},
		{"variance that is not normal", func(c *normCall) {
			c.backward.RSigma = tensortest.Random(t, 1, tensor.F32, 4)
			c.backward.RSigma.Set(1e20, 2)
		}, "given rsigma[2] = 1e+20, whose 1/rsigma² has no full precision in f32"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newNormCall(t, 2, tensor.F32, 4, 8)
			tt.change(&c)
			results := c.results()
			delete(results, "rsigma")
			delete(results, "mu")
			before := map[string][]float64{}
			for name, r := range results {
				if r != nil {
					before[name] = r.Float64s()
				}
			}
			err := c.run(x, h.layerNormForward, h.layerNormBackward)
			require.ErrorIs(t, err, opregistry.ErrUnsupported)
			assert.ErrorContains(t, err, tt.want)
			assert.Equal(t, before["dx"], c.backward.DX.Float64s())
		})
	}
}
