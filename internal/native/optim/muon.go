package optim

import (
	"errors"
	"fmt"
	"math"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/tensor"
)

// MuonScale is how an update of Muon is scaled by the size of its matrix, with Megatron's names.
type MuonScale string

// The scales of the update of a matrix with so many outputs and inputs.
const (
	Spectral     MuonScale = "spectral"      // √max(outputs, inputs)
	UnitRMSNorm  MuonScale = "unit_rms_norm" // √(outputs/inputs)
	ShapeScaling MuonScale = "shape_scaling" // √max(1, outputs/inputs)
)

// Values returns the scales.
func (MuonScale) Values() []string {
	return []string{string(Spectral), string(UnitRMSNorm), string(ShapeScaling)}
}

// MuonConfig are the parameters of Muon, with Megatron's names.
type MuonConfig struct {
	Momentum   float64   `param:"muon_momentum"`
	Nesterov   bool      `param:"muon_use_nesterov"`
	Steps      int       `param:"muon_num_ns_steps"` // of the iteration of Newton and Schulz
	Scale      MuonScale `param:"muon_scale_mode"`
	ExtraScale float64   `param:"muon_extra_scale_factor"`
	SplitQKV   bool      `param:"muon_split_qkv"` // queries, keys and values are matrices of their own
}

func (c MuonConfig) validate(f *faults) {
	f.check(c.Momentum >= 0 && c.Momentum < 1, "muon_momentum", c.Momentum, "0 <= muon_momentum < 1")
	f.check(c.Steps >= 1, "muon_num_ns_steps", c.Steps, "a number >= 1")
	f.check(c.ExtraScale > 0, "muon_extra_scale_factor", c.ExtraScale, "a number > 0")
	f.oneOf("muon_scale_mode", string(c.Scale), c.Scale.Values())
}

// factor returns the factor of the update of a matrix.
func (c MuonConfig) factor(m matrix) float64 {
	out, in := float64(m.value.Shape()[0]), float64(m.value.Shape()[1])
	switch d := m.divided; {
	case d == nil:
	case d.Columns:
		in *= float64(d.Ranks)
	default:
		out *= float64(d.Ranks)
	}
	if m.inOut {
		out, in = in, out
	}
	switch c.Scale {
	case UnitRMSNorm:
		return c.ExtraScale * math.Sqrt(out/in)
	case ShapeScaling:
		return c.ExtraScale * math.Sqrt(max(1, out/in))
	default:
		return c.ExtraScale * math.Sqrt(max(out, in))
	}
}

// newtonSchulz are the coefficients of the steps X ← aX + (bA + cA²)X with A = XXᵀ, which bring all
// singular values of X near 1. Further steps begin again. Source: Jordan et al. 2024, "Muon", with
// the coefficients that Cesista et al. 2025 found for five steps.
func newtonSchulz(step int) (a, b, c float64) {
	all := [...][3]float64{
		{4.0848, -6.8946, 2.9270}, {3.9505, -6.3029, 2.6377}, {3.7418, -5.5913, 2.3037}, {2.8769, -3.1427, 1.2046}, {2.8366, -3.0525, 1.2012},
	}
	x := all[step%len(all)]
	return x[0], x[1], x[2]
}

// muon updates the matrices of layers with the orthogonal factor of their momentum
//
//	m = μ·m + (1−μ)·g      u = m, or (1−μ)·g + μ·m with Nesterov
//	w −= lr·(factor·orthogonal(u) + weight_decay·w)
//
// and all other weights with Adam.
type muon struct {
	cfg      OptimizerConfig
	rest     *adam
	restOf   []int // for each weight of rest, its index among all
	weights  int
	matrices []matrix
	momentum []*tensor.Tensor // of each weight, nil for those of rest

	sgd    *opmanager.Bound[optim.MultiTensorSGDArgs]
	scale  *opmanager.Bound[optim.MultiTensorScaleArgs]
	l2norm *opmanager.Bound[optim.MultiTensorL2NormArgs]
	gemm   *opmanager.Bound[gemm.GenericGemmArgs]
	flag   *tensor.Tensor
	total  *tensor.Tensor
	memory
}

// matrix is a matrix that is orthogonalised, with views of scratch that all matrices share.
type matrix struct {
	value, grad, momentum *tensor.Tensor
	x, next               *tensor.Tensor // of its shape
	square, poly          *tensor.Tensor // [n n], of the size of rows if it is wide, else of columns
	inOut                 bool
	divided               *Divided
	decay                 bool
	lrScale               float64
}

func newMuon(cfg OptimizerConfig, params []Param, m *opmanager.Manager, backend device.Backend) (_ *muon, err error) {
	u := &muon{
		cfg: cfg, weights: len(params), momentum: make([]*tensor.Tensor, len(params)), memory: memory{backend: backend},
		sgd: opmanager.MustBind(m, optim.MultiTensorSGD), scale: opmanager.MustBind(m, optim.MultiTensorScale),
		l2norm: opmanager.MustBind(m, optim.MultiTensorL2Norm), gemm: opmanager.MustBind(m, gemm.GenericGemm),
	}
	var rest []Param
	for i, p := range params {
		if p.Matrices == nil {
			rest, u.restOf = append(rest, p), append(u.restOf, i)
		}
	}
	if u.rest, err = newAdam(cfg, rest, m, backend); err != nil {
		return nil, err
	}
	if err = u.allocate(params); err != nil {
		return nil, errors.Join(err, u.Close())
	}
	return u, nil
}

func (u *muon) allocate(params []Param) (err error) {
	if u.flag, err = u.new(tensor.I32, 1); err != nil {
		return err
	}
	if u.total, err = u.new(tensor.F32, 1); err != nil {
		return err
	}
	for i, p := range params {
		if p.Matrices == nil {
			continue
		}
		if u.momentum[i], err = u.new(tensor.F32, p.Value.Shape()...); err != nil {
			return err
		}
		if err := u.cut(p, u.momentum[i]); err != nil {
			return err
		}
	}
	return u.share()
}

// cut lists the matrices of a weight.
func (u *muon) cut(p Param, momentum *tensor.Tensor) error {
	from := 0
	for _, rows := range p.Matrices {
		m := matrix{inOut: p.InOut, divided: p.Divided, decay: p.Decay, lrScale: p.lrScale()}
		for to, t := range map[**tensor.Tensor]*tensor.Tensor{&m.value: p.Value, &m.grad: p.Grad, &m.momentum: momentum} {
			var err error
			if *to, err = t.Slice(0, from, from+rows); err != nil {
				return fmt.Errorf("muon: %w", err)
			}
		}
		from += rows
		u.matrices = append(u.matrices, m)
	}
	return nil
}

// wide reports whether polynomials of XXᵀ are multiplied with X from the left, and not those of XᵀX
// from the right. Both give the same: the smaller of the two is taken or, of a matrix that ranks
// share, that to which each of them can add its part.
func (m *matrix) wide() bool {
	if m.divided != nil {
		return m.divided.Columns
	}
	return m.value.Shape()[0] <= m.value.Shape()[1]
}

// side is the size of these products.
func (m *matrix) side() int {
	if m.wide() {
		return m.value.Shape()[0]
	}
	return m.value.Shape()[1]
}

// share allocates the scratch and gives each matrix views of it.
func (u *muon) share() error {
	size, square := 0, 0
	for _, m := range u.matrices {
		size, square = max(size, m.value.NumElements()), max(square, m.side())
	}
	var scratch [4]*tensor.Tensor
	for i, n := range []int{size, size, square * square, square * square} {
		var err error
		if scratch[i], err = u.new(tensor.F32, n); err != nil {
			return err
		}
	}
	view := func(t *tensor.Tensor, rows, cols int) (*tensor.Tensor, error) {
		part, err := t.Slice(0, 0, rows*cols)
		if err != nil {
			return nil, err
		}
		return part.Reshape(rows, cols)
	}
	for i := range u.matrices {
		m := &u.matrices[i]
		rows, cols := m.value.Shape()[0], m.value.Shape()[1]
		n := m.side()
		var errs [4]error
		m.x, errs[0] = view(scratch[0], rows, cols)
		m.next, errs[1] = view(scratch[1], rows, cols)
		m.square, errs[2] = view(scratch[2], n, n)
		m.poly, errs[3] = view(scratch[3], n, n)
		if err := errors.Join(errs[:]...); err != nil {
			return fmt.Errorf("muon: %w", err)
		}
	}
	return nil
}

// Step implements Optimizer.
func (u *muon) Step(up Update) error {
	if err := u.rest.Step(up); err != nil {
		return err
	}
	for _, m := range u.matrices {
		if err := u.update(m, up); err != nil {
			return fmt.Errorf("optimizer step: %w", err)
		}
	}
	return nil
}

func (u *muon) update(m matrix, up Update) error {
	mu := float32(u.cfg.Momentum)
	// The learning rate of 0 leaves the second list as it is.
	err := u.descend(m.grad, m.next, m.momentum, optim.MultiTensorSGDArgs{Momentum: mu, Dampening: mu, Scale: 1})
	if err != nil {
		return err
	}
	if u.cfg.Nesterov {
		if err = u.scaled(m.momentum, m.x, u.cfg.Momentum); err == nil {
			err = u.descend(m.grad, m.x, m.momentum, optim.MultiTensorSGDArgs{LR: -1, Scale: 1 - mu})
		}
	} else {
		err = u.scaled(m.momentum, m.x, 1)
	}
	if err != nil {
		return err
	}
	if m.x, err = u.orthogonal(m); err != nil {
		return err
	}
	args := optim.MultiTensorSGDArgs{LR: float32(up.LR * m.lrScale), Scale: float32(u.cfg.factor(m))}
	if m.decay {
		args.WD = float32(up.WeightDecay)
	}
	return u.descend(m.x, m.value, m.momentum, args)
}

// orthogonal returns the orthogonal factor of x, in memory of x or next.
func (u *muon) orthogonal(m matrix) (*tensor.Tensor, error) {
	const least = 1e-7
	norm, err := u.norm(m)
	if err != nil {
		return nil, err
	}
	if err := u.scaled(m.x, m.x, 1/max(norm, least)); err != nil {
		return nil, err
	}
	wide := m.wide()
	for step := range u.cfg.Steps {
		a, b, c := newtonSchulz(step)
		if err := u.gemm.Call(gemm.GenericGemmArgs{A: m.x, TransA: wide, B: m.x, TransB: !wide, D: m.square}); err != nil {
			return nil, err
		}
		if m.divided != nil {
			if err := m.divided.Sum(m.square); err != nil {
				return nil, err
			}
		}
		if err := u.scaled(m.square, m.poly, b); err != nil {
			return nil, err
		}
		if err := u.gemm.Call(gemm.GenericGemmArgs{A: m.square, B: m.square, D: m.poly, Accumulate: true, Alpha: opregistry.Float(float32(c))}); err != nil {
			return nil, err
		}
		if err := u.scaled(m.x, m.next, a); err != nil {
			return nil, err
		}
		left, right := m.poly, m.x
		if !wide {
			left, right = m.x, m.poly
		}
		if err := u.gemm.Call(gemm.GenericGemmArgs{A: right, B: left, D: m.next, Accumulate: true}); err != nil {
			return nil, err
		}
		m.x, m.next = m.next, m.x
	}
	return m.x, nil
}

// norm returns the Euclidean norm of x.
func (u *muon) norm(m matrix) (float64, error) {
	if err := clearNorm(u.flag, u.total); err != nil {
		return 0, err
	}
	if err := u.l2norm.Call(optim.MultiTensorL2NormArgs{NoopFlag: u.flag, TensorLists: [][]*tensor.Tensor{{m.x}}, Norm: u.total}); err != nil {
		return 0, err
	}
	total, err := tensor.Read[float32](u.total)
	if err != nil {
		return 0, err
	}
	if m.divided == nil {
		return float64(total[0]), nil
	}
	if err := tensor.Fill(u.total, func(v []float32) { v[0] = total[0] * total[0] }); err != nil {
		return 0, err
	}
	if err := m.divided.Sum(u.total); err != nil {
		return 0, err
	}
	total, err = tensor.Read[float32](u.total)
	if err != nil {
		return 0, err
	}
	return math.Sqrt(float64(total[0])), nil
}

// descend calls the op of SGD for one matrix.
func (u *muon) descend(g, p, momentum *tensor.Tensor, args optim.MultiTensorSGDArgs) error {
	if err := tensor.Fill(u.flag, func(v []int32) { v[0] = 0 }); err != nil {
		return err
	}
	args.NoopFlag, args.TensorLists = u.flag, [][]*tensor.Tensor{{g}, {p}, {momentum}}
	return u.sgd.Call(args)
}

// scaled writes from times a factor.
func (u *muon) scaled(from, to *tensor.Tensor, factor float64) error {
	return u.scale.Call(optim.MultiTensorScaleArgs{NoopFlag: u.flag, TensorLists: [][]*tensor.Tensor{{from}, {to}}, Scale: float32(factor)})
}

// State implements Optimizer.
func (u *muon) State() []State {
	all := []State{{momentumBuffer, u.momentum}}
	for _, s := range u.rest.State() {
		own := make([]*tensor.Tensor, u.weights)
		for i, at := range u.restOf {
			own[at] = s.Tensors[i]
		}
		all = append(all, State{s.Name, own})
	}
	return all
}

// Close implements Optimizer.
func (u *muon) Close() error { return errors.Join(u.rest.Close(), u.memory.Close()) }

var _ Optimizer = (*muon)(nil)
