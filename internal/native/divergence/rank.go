package divergence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/tensor"
)

// Metrics are what a training run is judged by. A metric that is not finite is nil.
type Metrics struct {
	Loss      *float64 `json:"loss"`       // of the last step
	ValidLoss *float64 `json:"valid_loss"` // of other tokens, after the last step
	GradNorm  *float64 `json:"grad_norm"`  // of the last step
}

func (m *Metrics) list() [3]*float64 { return [3]*float64{m.Loss, m.ValidLoss, m.GradNorm} }

// Effect is how far metrics move when some ops run on their good impls.
type Effect struct {
	Ops   []string `json:"ops"`   // that are swapped
	Impls []string `json:"impls"` // that are in use for them
	Layer *int     `json:"layer,omitempty"`
	Moves Metrics  `json:"moves"` // by how much; nil for a metric that is finite in one of the runs only
	// Rounding is the largest move of a metric, as a multiple of the spread that rounding alone gives
	// it, at most MaxRounding.
	Rounding float64 `json:"times_rounding"`
	// Confidence is the probability that rounding alone moves no metric as far.
	Confidence float64 `json:"confidence"`
	Explained  bool    `json:"explained_by_rounding"`
}

// MaxRounding bounds Effect.Rounding.
const MaxRounding = 1e9

// Ranking says which impls in use move the metrics of training, and how far.
type Ranking struct {
	Steps     int      `json:"steps"`
	InUse     Metrics  `json:"in_use"`
	Good      Metrics  `json:"good"`     // all ops on their good impls
	Rounding  Metrics  `json:"rounding"` // the spread that rounding alone gives the metrics
	Trials    int      `json:"trials"`   // the runs from which that is known
	Differ    []string `json:"differ"`   // the ops whose impls in use are not the good ones
	Explained bool     `json:"explained_by_rounding"`
	Ranked    []Effect `json:"ranked"` // alone, the largest effect first
	Groups    []Effect `json:"groups"` // together explained by rounding, so not swapped alone
	Layers    []Effect `json:"layers"` // of the first of Ranked, the largest effect first
	Runs      int      `json:"runs"`
}

// The spread of rounding is that of roundingTrials runs, in which each result of an op is off by
// what impls that are right differ by. It explains an effect if it moves a metric as far with a
// probability of 1 - enough or more.
const (
	roundingTrials = 6
	enough         = 0.999
)

// Rank swaps the impls that the policy Bad uses for those of Good, in groups that it halves and
// then alone, and ranks them by their effect on the metrics after some steps with the same weights
// and tokens. It stops early when rounding explains the effect of all of them together.
func Rank(ctx context.Context, set Settings) (*Ranking, error) {
	s := &Search{Settings: set, report: Report{Steps: set.Steps}}
	if err := s.compareDispatch(); err != nil {
		return nil, err
	}
	k := &ranker{Search: s, found: &Ranking{Steps: set.Steps, Trials: roundingTrials, Differ: s.report.Differ, Ranked: []Effect{}, Groups: []Effect{}, Layers: []Effect{}}}
	err := k.rank(ctx)
	k.found.Runs = s.report.Runs
	return k.found, err
}

// ranker is a ranking in progress.
type ranker struct {
	*Search
	found *Ranking
	all   []int // the numbers of units
}

func (k *ranker) rank(ctx context.Context) (err error) {
	for i := range k.units {
		k.all = append(k.all, i)
	}
	inUse := func(string, int) bool { return true }
	if k.found.InUse, err = k.measure(ctx, "impls in use", inUse); err != nil {
		return err
	}
	if err := k.measureRounding(ctx, inUse); err != nil {
		return err
	}
	whole, err := k.swap(ctx, k.all, nil)
	if err != nil {
		return err
	}
	if k.found.Explained = whole.Explained; whole.Explained {
		k.found.Groups = append(k.found.Groups, whole)
		return nil
	}
	if err := k.halve(ctx, k.all, whole); err != nil {
		return err
	}
	byEffect := func(a, b Effect) int { return cmp.Compare(b.Rounding, a.Rounding) }
	slices.SortStableFunc(k.found.Ranked, byEffect)
	slices.SortStableFunc(k.found.Groups, byEffect)
	if len(k.found.Ranked) == 0 {
		return nil
	}
	first := k.unitsOf(k.found.Ranked[0].Ops)
	for _, layer := range k.allLayers() {
		e, err := k.swap(ctx, first, &layer)
		if err != nil {
			return err
		}
		k.found.Layers = append(k.found.Layers, e)
	}
	slices.SortStableFunc(k.found.Layers, byEffect)
	return nil
}

// unitsOf returns the units of some ops.
func (k *ranker) unitsOf(ops []string) (units []int) {
	for i, unit := range k.units {
		if slices.Contains(ops, unit[0]) {
			units = append(units, i)
		}
	}
	return units
}

// halve swaps the halves of a group whose effect rounding does not explain, down to single units.
// If rounding explains both halves, the group is ranked as a whole.
func (k *ranker) halve(ctx context.Context, group []int, whole Effect) error {
	if len(group) == 1 {
		k.found.Ranked = append(k.found.Ranked, whole)
		return nil
	}
	half := (len(group) + 1) / 2
	parts := [][]int{group[:half], group[half:]}
	var effects [2]Effect
	for i, part := range parts {
		var err error
		if effects[i], err = k.swap(ctx, part, nil); err != nil {
			return err
		}
	}
	if effects[0].Explained && effects[1].Explained {
		k.found.Ranked = append(k.found.Ranked, whole)
		return nil
	}
	for i, part := range parts {
		if effects[i].Explained {
			k.found.Groups = append(k.found.Groups, effects[i])
			continue
		}
		if err := k.halve(ctx, part, effects[i]); err != nil {
			return err
		}
	}
	return nil
}

// swap measures the effect of the good impls of some units, in one layer or in all.
func (k *ranker) swap(ctx context.Context, group []int, layer *int) (Effect, error) {
	ops := slices.Concat(k.pick(slices.Clone(group))...)
	e := Effect{Ops: ops, Layer: layer, Impls: k.implsOf(ops, layer)}
	what := "good impls of " + strings.Join(ops, " ")
	if layer == nil && len(group) == len(k.units) {
		what = "all good impls"
	}
	if layer != nil {
		what = fmt.Sprintf("%s in layer %d", what, *layer)
	}
	got, err := k.measure(ctx, what, func(op string, at int) bool {
		return !slices.Contains(ops, op) || layer != nil && at != *layer
	})
	if err != nil {
		return e, err
	}
	if layer == nil && len(group) == len(k.units) {
		k.found.Good = got
	}
	k.judge(&e, got)
	return e, nil
}

// judge compares metrics with those of the impls in use.
func (k *ranker) judge(e *Effect, got Metrics) {
	into := [3]**float64{&e.Moves.Loss, &e.Moves.ValidLoss, &e.Moves.GradNorm}
	before, after, spread := k.found.InUse.list(), got.list(), k.found.Rounding.list()
	for i := range into {
		times := 0.0
		switch {
		case before[i] == nil && after[i] == nil:
			continue
		case before[i] == nil || after[i] == nil:
			times = MaxRounding
		default:
			move := *after[i] - *before[i]
			*into[i] = &move
			if move != 0 {
				times = min(MaxRounding, math.Abs(move)/max(math.SmallestNonzeroFloat64, *spread[i]))
			}
		}
		e.Rounding = max(e.Rounding, times)
	}
	// The spread of a few trials is known roughly: Student's distribution has heavier tails than the
	// normal one, and any of the metrics may have moved by chance.
	e.Confidence = max(0, 1-float64(len(into))*studentTail(e.Rounding, roundingTrials))
	e.Explained = e.Confidence < enough
}

// studentTail returns the probability that Student's distribution with an even number of degrees of
// freedom is farther from 0 than t, in either direction.
func studentTail(t float64, freedom int) float64 {
	theta := math.Atan(t / math.Sqrt(float64(freedom)))
	sum, term := 1.0, 1.0
	for i := 1; i < freedom/2; i++ {
		term *= math.Cos(theta) * math.Cos(theta) * float64(2*i-1) / float64(2*i)
		sum += term
	}
	return max(0, 1-math.Sin(theta)*sum)
}

// implsOf returns the impls that are in use for ops and not the good ones, in one layer or in all.
func (k *ranker) implsOf(ops []string, layer *int) []string {
	ids := []string{}
	for at, orders := range k.bad {
		if layer != nil && at.layer != *layer {
			continue
		}
		for _, op := range ops {
			if id := orders.selected(op); id != "" && id != k.good[at].selected(op) && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// measure trains with the impls in use of the ops and layers for which inUse says so.
func (k *ranker) measure(ctx context.Context, what string, inUse func(op string, layer int) bool) (Metrics, error) {
	k.report.Runs++
	if k.Progress != nil {
		k.Progress(k.report.Runs, what)
	}
	var m Metrics
	step := 0
	err := k.steps(ctx, k.policyOf(inUse), nil, func(b *native.Bench) error {
		if step++; step < k.Steps {
			return nil
		}
		valid, err := b.ValidLoss()
		m = Metrics{Loss: finiteOnly(b.Last().Loss), ValidLoss: finiteOnly(valid), GradNorm: finiteOnly(b.Last().GradNorm)}
		return err
	})
	return m, err
}

func finiteOnly(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// measureRounding finds the spread that rounding in the ops whose impls differ gives the metrics.
func (k *ranker) measureRounding(ctx context.Context, inUse func(string, int) bool) error {
	var squares [3]float64
	before := k.found.InUse.list()
	for trial := range roundingTrials {
		remove := k.Manager.Tap(&disturber{ops: k.found.Differ, random: rand.New(rand.NewPCG(1, uint64(trial)))})
		got, err := k.measure(ctx, fmt.Sprintf("rounding, trial %d of %d", trial+1, roundingTrials), inUse)
		remove()
		if err != nil {
			return err
		}
		for i, after := range got.list() {
			if before[i] != nil && after != nil {
				squares[i] += (*after - *before[i]) * (*after - *before[i])
			}
		}
	}
	spread := func(i int) *float64 {
		v := math.Sqrt(squares[i] / roundingTrials)
		if before[i] != nil { // at least what the metric itself is rounded by
			v = max(v, math.Abs(*before[i])*0x1p-24)
		}
		return &v
	}
	k.found.Rounding = Metrics{Loss: spread(0), ValidLoss: spread(1), GradNorm: spread(2)}
	return nil
}

// disturber is an opmanager.Tap that changes each result of some ops by a rounding, up or down.
type disturber struct {
	ops []string

	mu     sync.Mutex
	random *rand.Rand
}

// Begin implements opmanager.Tap.
func (d *disturber) Begin(call opmanager.TappedCall) func(opmanager.ImplInfo, error) error {
	if !slices.Contains(d.ops, call.Op.Name()) {
		return nil
	}
	return func(_ opmanager.ImplInfo, fault error) error {
		if fault != nil {
			return nil
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		var errs []error
		seen := map[*tensor.Tensor]bool{}
		for _, o := range call.Args.Operands() {
			if o.Tensor == nil || o.Access == opregistry.AccessRead || !o.Tensor.DType().IsFloat() || seen[o.Tensor] {
				continue
			}
			seen[o.Tensor] = true
			errs = append(errs, d.disturb(o.Tensor))
		}
		return errors.Join(errs...)
	}
}

func (d *disturber) disturb(t *tensor.Tensor) error {
	step := roundingOf(t.DType())
	values := t.Float64s()
	for i, v := range values {
		if d.random.Uint32()&1 != 0 {
			step = -step
		}
		values[i] = v + v*step
	}
	return t.SetFloat64s(values)
}

// roundingOf returns by how much of a result impls that are right differ: by half the distance of
// neighbouring numbers of a narrow dtype, and otherwise by a few times that of float32, since their
// sums run in another order.
func roundingOf(d tensor.DType) float64 {
	bits := map[tensor.DType]int{tensor.F16: 10, tensor.BF16: 7, tensor.F8E4M3: 3, tensor.F8E5M2: 2} // of the fraction
	if n, narrow := bits[d]; narrow {
		return math.Ldexp(1, -n-1)
	}
	return 0x1p-21
}

var _ opmanager.Tap = (*disturber)(nil)
