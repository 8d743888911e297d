package divergence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/recording"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/config"
)

// Settings say what is compared.
type Settings struct {
	Module  *config.Module
	Manager *opmanager.Manager
	Ops     *opregistry.Snapshot // of the registry of Manager
	Device  device.Backend
	Log     *slog.Logger

	Good, Bad oppolicy.Policy
	Steps     int
	Tolerance float64 // of the loss, relative
	NaN       bool    // look for losses that are not finite under Bad only
	File      string  // for the call at fault; "" keeps none

	// Progress is called before each training run. It may be nil.
	Progress func(run int, what string)
}

// Report is the result of a search.
type Report struct {
	Steps    int          `json:"steps"`
	Good     []float64    `json:"good_losses"`
	Bad      []float64    `json:"bad_losses"`     // ends at the first that is not finite
	Diverges int          `json:"diverges"`       // the first step whose losses differ; 0 if none do
	Differ   []string     `json:"differ"`         // the ops whose impls differ between the policies
	Ops      []string     `json:"ops"`            // those at fault
	Layers   []int        `json:"layers"`         // in which they are at fault; -1 is outside of layers
	Runs     int          `json:"runs"`           // training runs, after the first two as far as Diverges
	Call     *CallAtFault `json:"call,omitempty"` // nil if no single call has a different result
}

// CallAtFault is the first call whose results differ between the policies.
type CallAtFault struct {
	Op string `json:"op"`
	recording.Site
	Good  string           `json:"good_impl_id"`
	Bad   string           `json:"bad_impl_id"`
	Match *recording.Match `json:"match"` // of the bad result with the good one
	File  string           `json:"file,omitempty"`
}

// Search is a search in progress.
type Search struct {
	Settings
	report Report
	good   map[scope]orders
	bad    map[scope]orders
	units  [][]string // ops whose impls differ, those of a family together
	layers int
}

// scope is a part of the model: a layer, -1 for outside of layers, and a phase of the step.
type scope struct {
	layer int
	phase oppolicy.Phase
}

// orders are the impls of each op that may serve calls, best first.
type orders map[string][]string

// selected returns the impl that serves an op, "" for none.
func (o orders) selected(op string) string {
	if len(o[op]) == 0 {
		return ""
	}
	return o[op][0]
}

// Find searches for the op, the layer and the call at fault. If their file cannot be written, it
// returns the Report and an error.
func Find(ctx context.Context, set Settings) (*Report, error) {
	s := &Search{Settings: set, report: Report{Steps: set.Steps, Ops: []string{}, Layers: []int{}, Differ: []string{}}}
	if err := s.compareDispatch(); err != nil {
		return nil, err
	}
	var err error
	if s.report.Good, err = s.losses(ctx, "all ops under the good policy", nil, nil); err != nil {
		return nil, err
	}
	all := s.allLayers()
	if s.report.Bad, err = s.losses(ctx, "all ops under the bad policy", s.units, all); err != nil {
		return nil, err
	}
	if s.report.Diverges = s.diverges(s.report.Bad); s.report.Diverges == 0 {
		return &s.report, nil
	}
	s.Steps = s.report.Diverges // what differs later has not caused it
	fails := func(what string, units [][]string, layers []int) (bool, error) {
		losses, err := s.losses(ctx, what, units, layers)
		return err == nil && s.diverges(losses) > 0, err
	}
	index := make([]int, len(s.units))
	for i := range index {
		index[i] = i
	}
	index, err = minimise(index, func(set []int) (bool, error) { return fails("ops", s.pick(set), all) })
	if err != nil {
		return nil, err
	}
	units := s.pick(index)
	s.report.Ops = slices.Concat(units...)
	s.report.Layers, err = minimise(all, func(set []int) (bool, error) { return fails("layers", units, set) })
	if err != nil {
		return nil, err
	}
	slices.Sort(s.report.Layers)
	err = s.findCall(ctx, units)
	if s.report.Call == nil && err != nil {
		return nil, err
	}
	return &s.report, err
}

func (s *Search) pick(set []int) [][]string {
	slices.Sort(set)
	units := make([][]string, len(set))
	for i, k := range set {
		units[i] = s.units[k]
	}
	return units
}

// compareDispatch finds the ops whose impls differ between the policies.
func (s *Search) compareDispatch() error {
	bench, _, err := native.NewBench(s.Module, s.Manager, s.Device, s.Log)
	if err != nil {
		return err
	}
	s.layers = bench.Args().NumLayers
	if err := bench.Close(); err != nil {
		return err
	}
	s.good, s.bad = s.ordersUnder(s.Good), s.ordersUnder(s.Bad)
	families := map[string]int{}
	for _, op := range s.Ops.Ops() {
		name := op.Name()
		differs := false
		for at, good := range s.good {
			differs = differs || good.selected(name) != s.bad[at].selected(name)
		}
		if !differs {
			continue
		}
		s.report.Differ = append(s.report.Differ, name)
		family := cmp.Or(op.Family(), name)
		if _, known := families[family]; !known {
			families[family] = len(s.units)
			s.units = append(s.units, nil)
		}
		s.units[families[family]] = append(s.units[families[family]], name)
	}
	if len(s.units) == 0 {
		return errors.New("both policies choose the same impl of every op, want two that differ")
	}
	return nil
}

// ordersUnder returns the orders of a policy.
func (s *Search) ordersUnder(p oppolicy.Policy) map[scope]orders {
	m := s.Manager.With(p)
	defer m.Close()
	all := map[scope]orders{}
	for _, layer := range s.allLayers() {
		for _, phase := range phases() {
			found := orders{}
			for _, e := range m.ExplainIn(layer, phase, nil) {
				for _, c := range e.Order {
					found[e.Op] = append(found[e.Op], c.ID)
				}
			}
			all[scope{layer, phase}] = found
		}
	}
	return all
}

// phases returns the phases of a step, and the zero one for calls outside of them.
func phases() []oppolicy.Phase {
	return []oppolicy.Phase{oppolicy.PhaseUnspecified, oppolicy.PhaseForward, oppolicy.PhaseBackward}
}

// allLayers returns the numbers of all layers, and last -1 for calls outside of them: the search
// takes the first that suffice, and a fault in a layer precedes what follows from it.
func (s *Search) allLayers() []int {
	all := make([]int, 0, s.layers+1)
	for i := range s.layers {
		all = append(all, i)
	}
	return append(all, -1)
}

// policy returns the policy under which these ops have their bad order in these layers, and
// everything else its good one.
func (s *Search) policy(units [][]string, layers []int) oppolicy.Policy {
	ops := slices.Concat(units...)
	return s.policyOf(func(op string, layer int) bool { return slices.Contains(ops, op) && slices.Contains(layers, layer) })
}

// policyOf returns the policy under which an op has its bad order in a layer if bad says so, and
// otherwise its good one.
func (s *Search) policyOf(bad func(op string, layer int) bool) oppolicy.Policy {
	rules := func(at scope) (list []oppolicy.OpRule) {
		for op, order := range s.good[at] {
			if bad(op, at.layer) {
				order = s.bad[at][op]
			}
			rule := oppolicy.OpRule{Pattern: op, Source: "the search"}
			for _, id := range order {
				rule.Order = append(rule.Order, oppolicy.Token{Impl: id})
			}
			list = append(list, rule)
		}
		return list
	}
	p := oppolicy.Default()
	p.Strict, p.PerOp = s.Good.Strict, rules(scope{layer: -1})
	for at := range s.good {
		if at.layer < 0 && at.phase != oppolicy.PhaseUnspecified {
			p.Rules = append(p.Rules, oppolicy.Rule{Phase: at.phase, PerOp: rules(at)})
		}
	}
	for at := range s.good { // after those for calls outside of layers, whose place they take
		if at.layer >= 0 && at.phase != oppolicy.PhaseUnspecified {
			p.Rules = append(p.Rules, oppolicy.Rule{Layers: []oppolicy.LayerRange{{First: at.layer, Last: at.layer}}, Phase: at.phase, PerOp: rules(at)})
		}
	}
	return p
}

// losses trains with these ops under the bad policy in these layers. The losses end at the first
// that is not finite.
func (s *Search) losses(ctx context.Context, what string, units [][]string, layers []int) ([]float64, error) {
	s.report.Runs++
	if s.Progress != nil {
		if len(units) > 0 && len(units) < len(s.units) {
			what = fmt.Sprintf("%s: %s", what, strings.Join(slices.Concat(units...), " "))
		}
		s.Progress(s.report.Runs, what)
	}
	return s.train(ctx, s.policy(units, layers), nil)
}

// train trains under a policy; begin is called before each step.
func (s *Search) train(ctx context.Context, p oppolicy.Policy, begin func(step int)) (losses []float64, err error) {
	losses = []float64{} // a list in JSON even if the first is not finite
	err = s.steps(ctx, p, begin, func(b *native.Bench) error {
		losses = append(losses, b.Last().Loss)
		return nil
	})
	return losses, err
}

// steps trains under a policy; begin is called before each step, and end after it. It ends at the
// first step that is not finite.
func (s *Search) steps(ctx context.Context, p oppolicy.Policy, begin func(step int), end func(*native.Bench) error) (err error) {
	p.Verify = oppolicy.Verify{Mode: oppolicy.VerifyOff} // wrong results are what is looked for
	m := s.Manager.With(p)
	defer m.Close()
	bench, _, err := native.NewBench(s.Module, m, s.Device, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bench.Close()) }()
	for step := 1; step <= s.Steps; step++ {
		if begin != nil {
			begin(step)
		}
		_, err := bench.Step(ctx)
		if errors.Is(err, backend.ErrNonFinite) {
			return nil
		}
		if err == nil {
			err = end(bench)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// diverges returns the first step at which losses differ from those of the good policy, 0 if none
// does.
func (s *Search) diverges(losses []float64) int {
	for i, want := range s.report.Good[:min(s.Steps, len(s.report.Good))] {
		switch {
		case i == len(losses):
			return i + 1
		case !s.NaN && math.Abs(losses[i]-want) > s.Tolerance*math.Abs(want):
			return i + 1
		}
	}
	return 0
}

// findCall finds the first call of the ops at fault whose results differ between the policies.
func (s *Search) findCall(ctx context.Context, units [][]string) error {
	ops := slices.Concat(units...)
	suspect := &recording.Suspect{Exec: s.Manager.Exec(), Other: func(c opmanager.TappedCall) *opregistry.Entry {
		if !slices.Contains(ops, c.Op.Name()) || !slices.Contains(s.report.Layers, c.Layer) {
			return nil
		}
		i, _ := s.Ops.Index(c.Op.Name())
		impls := s.Ops.Impls(i)
		good := s.good[scope{c.Layer, c.Phase}].selected(c.Op.Name())
		k := slices.IndexFunc(impls, func(e opregistry.Entry) bool { return e.ID == good })
		if k < 0 {
			return nil
		}
		return &impls[k]
	}}
	s.report.Runs++
	if s.Progress != nil {
		s.Progress(s.report.Runs, "calls of "+strings.Join(ops, " "))
	}
	defer s.Manager.Tap(suspect)()
	if _, err := s.train(ctx, s.policy(units, s.report.Layers), suspect.SetStep); err != nil {
		return err
	}
	found := suspect.Found()
	if found == nil {
		return nil
	}
	c := found.Call
	s.report.Call = &CallAtFault{Op: c.Op.Name(), Site: c.Site, Good: found.Other, Bad: c.Impl(), Match: found.Match}
	if s.File == "" {
		return nil
	}
	if err := c.Write(s.File); err != nil {
		return err
	}
	s.report.Call.File = s.File
	return nil
}
