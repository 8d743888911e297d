package train

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/patch"
)

// Plan says what Run would do.
type Plan struct {
	*backend.TrainContext
	Trainer     string // the name of its class
	Hooks       []string
	Environment []backend.EnvChange
	Added       []string // parameters that the framework does not know
	Conflicts   []backend.Conflict
	Phases      []PhasePlan
	// UnknownPatches says which patches are not in Phases because another program makes them, "" for none.
	UnknownPatches string
	Findings       []backend.Finding // of the trainer
	Problems       []string          // what would make Run fail, as far as can be seen
}

// PhasePlan says what would happen to each patch in a phase.
type PhasePlan struct {
	Phase     patch.Phase
	Decisions []patch.Decision
	Contended map[string][]string // what several patches change, and these in their order
}

// NewPlan returns what Run would do, and does nothing of it: setup hooks, Prepare and trainers are not run, and the
// environment stays as it is. Patches of phase build_args are applied to the arguments, so that the conditions of later
// phases see what they would see. What a trainer that is a backend.Inspector finds to be wrong is the error that Run would
// return. A framework that is not on this machine is a problem in the plan, not an error.
func NewPlan(ctx context.Context, s Settings) (*Plan, error) {
	if s.Environ == nil {
		s.Environ = backend.ProcessEnviron()
	}
	s.Environ = s.Environ.Overlay()
	r, err := open(s)
	if err != nil {
		return nil, err
	}
	r.dry = true
	r.tc.Log = slog.New(onlyProblems{s.Log.Handler()})
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	if r.class.New != nil {
		if err := r.inspect(ctx); err != nil {
			return nil, err
		}
	}
	for _, phase := range []patch.Phase{patch.Setup, patch.BeforeTrain, patch.AfterTrain} {
		r.planPhase(r.patchContext(phase))
	}
	if r.factory.PlanOnly {
		r.plan.Problems = append(r.plan.Problems, fmt.Sprintf("framework %s: %v", r.factory.Framework, backend.ErrPlanOnly))
		r.plan.UnknownPatches = fmt.Sprintf("Primus has more patches for %s, which its Python process makes", r.factory.Framework)
	}
	for _, hook := range r.factory.Hooks {
		r.plan.Hooks = append(r.plan.Hooks, hook.Name)
	}
	r.plan.TrainContext, r.plan.Trainer, r.plan.Environment = r.tc, r.class.Name, r.tc.Environ.Changes()
	return r.plan, nil
}

// inspect lets the trainer look at what it would read and write.
func (r *session) inspect(ctx context.Context) error {
	trainer, err := r.class.New(r.tc)
	if err != nil {
		return err
	}
	if i, ok := trainer.(backend.Inspector); ok {
		r.plan.Findings, err = i.Inspect(ctx)
	}
	return err
}

// planPhase notes what the patches of a phase would do.
func (r *session) planPhase(c *patch.Context) {
	plan, err := r.s.Patches.Plan(c, r.s.Filter)
	if err != nil {
		if c.Phase != patch.BuildArgs { // whose patches are run, and fail with the same error
			r.plan.Problems = append(r.plan.Problems, fmt.Sprintf("phase %s: %v", c.Phase, err))
		}
		return
	}
	r.plan.Phases = append(r.plan.Phases, PhasePlan{c.Phase, plan.Decisions, patch.Conflicts(plan.Selected())})
}

// Leaf is an argument of the framework that is no mapping.
type Leaf struct {
	Path, Value, Source string
}

// Leaves returns the arguments under their dotted names, sorted, with who wrote them: a place in a file, a token of the
// command line, a patch, or the framework.
func (p *Plan) Leaves() []Leaf {
	var leaves []Leaf
	for _, l := range flatten(p.Args.Map()) {
		top, _, _ := strings.Cut(l.path, ".")
		source := l.value.Origin().String()
		if by := p.Args.SetBy(top); by != "" && source == "" {
			source = by
		}
		if source == "" {
			source = "framework " + p.Framework
		}
		leaves = append(leaves, Leaf{l.path, backend.Shown(l.path, backend.Show(l.value)), source})
	}
	return leaves
}
