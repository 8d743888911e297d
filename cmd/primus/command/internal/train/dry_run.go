package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/dispatch"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/launch/elastic"
	"github.com/primus-fl/primus/internal/native/stepbench"
	"github.com/primus-fl/primus/internal/report"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/primus-fl/primus/runtime/train"
	"go.uber.org/fx"
)

// dryParams are what a dry run needs of the graph: what the run itself makes its decisions with.
type dryParams struct {
	fx.In
	Policy   oppolicy.Policy
	Device   device.Backend
	Manager  *opmanager.Manager
	Backends *backend.Registry
	Patches  *patch.Set
	Exec     *opregistry.Exec
}

// dryRun prints what training the module of a stage would do. It returns the error that the run
// would end with, if that is known without training.
func dryRun(ctx context.Context, prog cli.Program, s experiments.Stage, opts Options, e *config.Experiment) error {
	module, err := e.Module(s.Module)
	if err != nil {
		return err
	}
	if _, err := opts.fleet.Member(e, module); err != nil {
		return err
	}
	job, starts, err := opts.members(module)
	if err != nil {
		return err
	}
	log := slog.New(prog.Lines(prog.Err, slog.LevelWarn))
	experiments.LogReport(log, e.Report)
	if opts.Tune() == dispatch.TuneAuto {
		log.Warn("--tune auto measures when a run begins; what follows is without it")
		opts.SetTune(dispatch.TuneOff)
	}
	set := graph.Config{Log: log, Threads: int(opts.Threads), Policy: opts.PolicySources(module), Extras: prog.Extras, Module: module}
	var p dryParams
	var plan *train.Plan
	err = graph.Run(ctx, func() error {
		if err := checkManifest(opts.manifest, p.Manager); err != nil {
			return err
		}
		settings := opts.run.Settings(e, s, log)
		settings.Manager, settings.Device, settings.Backends, settings.Patches = p.Manager, p.Device, p.Backends, p.Patches
		if starts {
			if settings.Environ, err = environOfFirst(job); err != nil {
				return err
			}
		}
		if plan, err = train.NewPlan(ctx, settings); err != nil || module.Framework != native.Framework {
			return err
		}
		plan.Findings = append(plan.Findings, backend.Finding{Name: "ops", Text: servedBy(p.Manager)})
		if starts || plan.WorldSize > 1 || s != experiments.Pretrain || len(plan.Problems)+len(plan.WithoutImpl) > 0 {
			return nil
		}
		expected, err := stepbench.Expect(ctx, stepbench.Settings{
			Module: module, Manager: p.Manager, Device: p.Device, Pool: p.Exec.Pool(), Log: slog.New(slog.DiscardHandler),
		}, calibration)
		text := timeText(expected)
		if err != nil { // steps without patches cannot be made, or not on this machine
			text = "not measured: " + strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		plan.Findings = append(plan.Findings, backend.Finding{Name: "time", Text: text})
		return ctx.Err()
	}, graph.Core(set), fx.Invoke(func(built dryParams) { p = built }))
	if err != nil {
		return err
	}
	if starts {
		plan.Ranks = rankText(job)
	}
	text, err := report.Plan(prog.Out, plan, opts.run.Verbose)
	if err != nil {
		return err
	}
	_, err = io.WriteString(prog.Out, text)
	return err
}

// calibration is how long a dry run measures steps, about.
const calibration = 10 * time.Second

// timeText says how long a run takes.
func timeText(f stepbench.Forecast) string {
	total := f.Total().Round(time.Second)
	how := "measured now"
	if f.Guessed {
		how = "guessed by the peak of the processors, because one micro batch takes long"
	}
	text := fmt.Sprintf("about %v for all steps at %.0f tokens/s, %s", total, f.TokensPerSecond, how)
	if f.Evaluations >= time.Second {
		text += fmt.Sprintf("; %v of it for evaluations, at most", f.Evaluations.Round(time.Second))
	}
	return text + ", without reading text and saving"
}

// servedBy says which impls serve the ops, those that serve few by name.
func servedBy(m *opmanager.Manager) string {
	ops := map[string][]string{}
	for _, o := range m.Manifest().Ops {
		if o.Impl != "" {
			ops[o.Impl] = append(ops[o.Impl], o.Op)
		}
	}
	impls := slices.SortedFunc(maps.Keys(ops), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(ops[b]), len(ops[a])), cmp.Compare(a, b))
	})
	var parts []string
	for i, impl := range impls {
		if names := ops[impl]; i > 0 && len(names) <= 3 {
			parts = append(parts, impl+" "+strings.Join(names, ", "))
		} else {
			parts = append(parts, fmt.Sprintf("%s %d", impl, len(names)))
		}
	}
	return strings.Join(parts, "; ") + " (primus ops explain OP says why)"
}

// environOfFirst returns the environment of the first rank of a job, whose nodes start as many
// ranks as this one.
func environOfFirst(job elastic.Settings) (*backend.Environ, error) {
	env := backend.ProcessEnviron().Overlay()
	var faults []error
	for name, value := range map[string]int{"RANK": 0, "WORLD_SIZE": job.Slots * job.Members, "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": job.Slots} {
		faults = append(faults, env.Set(name, strconv.Itoa(value), "--nproc"))
	}
	return env, errors.Join(faults...)
}
