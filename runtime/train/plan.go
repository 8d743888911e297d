package train

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/internal/secret"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/patch"
)

// Plan describes what Run would do.
type Plan struct {
	*backend.TrainContext
	Trainer     string // the name of its class
	Hooks       []string
	Environment []backend.EnvChange
	Added       []string // parameters that neither ConvertConfig nor the runtime takes
	Conflicts   []backend.Conflict
	Phases      []PhasePlan
	// UnknownPatches describes patches that another program applies and that are not in Phases, "" if
	// there are none.
	UnknownPatches string
	Findings       []backend.Finding // of the trainer
	Launch         *launch.Plan      // the processes that training starts, nil for none
	Ranks          string            // the ranks that this process would start as copies of itself, "" for none
	Problems       []string          // the known reasons why Run would fail
	// WithoutImpl are the ops that the policy leaves without an impl although this program has one. It
	// is empty for frameworks that train in processes of their own.
	WithoutImpl []opmanager.Difference
}

// PhasePlan describes what would happen to each patch in a phase.
type PhasePlan struct {
	Phase     patch.Phase
	Decisions []patch.Decision
	Contended map[string][]string // the targets that several patches change, each with these patches in order
}

// NewPlan returns what Run would do, without doing it. It does not run setup hooks, Prepare or the
// trainer, and does not change the environment. It applies the patches of phase build_args to the
// arguments, because the conditions of later phases depend on them. If the trainer is a
// backend.Inspector, NewPlan returns the error that Inspect returns. A framework that is missing on
// this machine is a problem in the plan, not an error.
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
	r.tc.Log = slog.New(onlyProblems{Handler: s.Log.Handler()})
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
	if s.Manager != nil && !r.factory.Launches {
		unrestricted := s.Manager.With(oppolicy.Default())
		defer unrestricted.Close()
		r.plan.WithoutImpl = opmanager.WithoutImpl(unrestricted, s.Manager)
	}
	if r.factory.Launches {
		r.plan.UnknownPatches = fmt.Sprintf("Primus has more patches for %s, which its Python process makes", r.factory.Framework)
	}
	for _, hook := range r.factory.Hooks {
		r.plan.Hooks = append(r.plan.Hooks, hook.Name)
	}
	r.plan.TrainContext, r.plan.Trainer, r.plan.Environment = r.tc, r.class.Name, r.tc.Environ.Changes()
	return r.plan, nil
}

// Launcher is a trainer that trains in processes which it starts.
type Launcher interface {
	LaunchPlan() (*launch.Plan, error)
}

// inspect lets the trainer check what it would read and write.
func (r *session) inspect(ctx context.Context) error {
	trainer, err := r.class.New(r.tc)
	if err != nil {
		return err
	}
	if i, ok := trainer.(backend.Inspector); ok && !r.s.Elsewhere {
		if r.plan.Findings, err = i.Inspect(ctx); err != nil {
			return err
		}
	}
	if l, ok := trainer.(Launcher); ok {
		r.plan.Launch, err = l.LaunchPlan()
	}
	return err
}

// planPhase records what the patches of a phase would do.
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

// Leaf is an argument of the framework that is not a mapping.
type Leaf struct {
	Path, Value, Source string
}

// Leaves returns the arguments under their dotted names, sorted, with who wrote them: a place in a
// file, a token of the command line, a patch, or the framework.
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
		leaves = append(leaves, Leaf{l.path, secret.Shown(l.path, backend.Show(l.value)), source})
	}
	return leaves
}
