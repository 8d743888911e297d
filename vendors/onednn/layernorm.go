package onednn

import (
	"math"
	"runtime"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

// layerNormForward computes norm.LayerNormFwd for contiguous operands in CPU memory: x and y are
// both f32 or both bf16, γ and β are either. Sums are f32. A row with a NaN or an infinity becomes
// NaN. Scratch: two rows. It allocates nothing in a steady state unless squares overflow.
func (h *handle) layerNormForward(e *opregistry.Exec, a norm.LayerNormFwdArgs) error {
	if err := served([]named{{"input", a.Input}, {"output", a.Output}},
		[]named{{"weight", a.Weight}, {"bias", a.Bias}, {"mu", a.Mu}, {"rsigma", a.RSigma}}); err != nil {
		return err
	}
	rows, cols := a.Input.Shape().Rows(), a.Input.Shape().Cols()
	if rows == 0 {
		return nil
	}
	if tensor.Overlap(a.Input, a.Output) {
		if err := declineWide(a.Input); err != nil {
			return err
		}
	}
	s := scratch{exec: e}
	defer s.release()
	gain, bias := s.gain(a.Weight, a.ZeroCenteredGamma), s.asF32(a.Bias, cols)
	mu, variance := tensor.Data[float32](a.Mu), tensor.Data[float32](a.RSigma)
	annotate([]*tensor.Tensor{a.Input}, []*tensor.Tensor{a.Output, a.Mu, a.RSigma})
	err := h.execute(spec{kind: normForward, dtype: a.Input.DType(), rows: rows, cols: cols, eps: a.Eps},
		a.Input.Pointer(), first(mu), first(variance), first(gain), first(bias), a.Output.Pointer())
	runtime.KeepAlive(a)
	if err != nil {
		return err
	}
	for i, v := range variance {
		if overflows(v) {
			if mu[i], variance[i], err = wideForward(&a, i, gain, bias); err != nil {
				return err
			}
			continue
		}
		variance[i] = float32(1 / math.Sqrt(float64(v)+float64(a.Eps)))
	}
	return nil
}

// smallestNormal is the least f32 of full precision.
const smallestNormal = 0x1p-126

// layerNormBackward computes norm.LayerNormBwd for contiguous operands in CPU memory: x, dz and dx
// are all f32 or all bf16, γ, dgamma and dbeta are either. oneDNN computes rsigma from a variance
// and eps; it is given 1/rsigma² and 0, which yield rsigma apart from three roundings. Sums are
// f32; each thread adds up its own rows, so dgamma and dbeta depend on the number of threads.
// Scratch: one number per row, and up to three rows. It allocates nothing in a steady state.
func (h *handle) layerNormBackward(e *opregistry.Exec, a norm.LayerNormBwdArgs) error {
	if err := served([]named{{"x", a.X}, {"dz", a.DZ}, {"dx", a.DX}},
		[]named{{"gamma", a.Gamma}, {"dgamma", a.DGamma}, {"dbeta", a.DBeta}, {"mu", a.Mu}, {"rsigma", a.RSigma}}); err != nil {
		return err
	}
	rows, cols := a.X.Shape().Rows(), a.X.Shape().Cols()
	s := scratch{exec: e}
	defer s.release()
	variance := s.floats(rows)
	var wide []wideRow
	for i, r := range tensor.Data[float32](a.RSigma) {
		variance[i] = 1 / (r * r)
		if variance[i] < smallestNormal {
			return opregistry.Unsupported("given rsigma[%d] = %g, whose 1/rsigma² has no full precision in f32", i, r)
		}
		if overflows(variance[i]) {
			w, err := newWideRow(&a, i)
			if err != nil {
				return err
			}
			wide = append(wide, w)
		}
	}
	dgamma, dbeta := s.result(a.DGamma, cols), s.result(a.DBeta, cols)
	if rows == 0 {
		clear(dgamma)
		clear(dbeta)
	} else {
		gain, mu := s.gain(a.Gamma, a.ZeroCenteredGamma), tensor.Data[float32](a.Mu)
		annotate([]*tensor.Tensor{a.X, a.DZ, a.Mu}, []*tensor.Tensor{a.DX, a.DGamma, a.DBeta})
		// β does not affect the gradient, but oneDNN requires one.
		err := h.execute(spec{kind: normBackward, dtype: a.X.DType(), rows: rows, cols: cols},
			a.X.Pointer(), first(mu), first(variance), first(gain), first(gain), a.DZ.Pointer(), a.DX.Pointer(), first(dgamma), first(dbeta))
		runtime.KeepAlive(a)
		for _, w := range wide {
			if err == nil {
				err = w.backward(&a, gain, dgamma)
			}
		}
		if err != nil {
			return err
		}
	}
	store(a.DGamma, dgamma)
	store(a.DBeta, dbeta)
	return nil
}
