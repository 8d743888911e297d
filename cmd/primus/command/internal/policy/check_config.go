package policy

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/primus-fl/primus/runtime/backends/native"
)

// checkForExperiment returns an error if a policy file, under the other sources of policy of an
// experiment, leaves a call of its training without an impl.
func checkForExperiment(ctx context.Context, prog cli.Program, log *slog.Logger, file, experiment string) error {
	layer, err := policyfile.Read(ctx, file)
	if err != nil {
		return err
	}
	o := experiments.TrainingOptions{Options: experiments.Options{Config: experiment}}
	return o.WithSteps(ctx, prog, "policy check --config", nil, func(p experiments.StepParams) error {
		calls, warnings, err := native.ExpectedCalls(p.Module, p.Manager, p.Device, p.Log)
		for _, w := range warnings {
			log.Warn(w.String())
		}
		if err != nil {
			return fmt.Errorf("%s: %w", experiment, err)
		}
		// What the experiment says without the file is not in question.
		_ = p.Manager.Expect(calls)
		if refused := p.Manager.PolicyStack().DryRun(opmanager.LayerFile, layer.PolicyLayer).Refused; refused != nil {
			return fmt.Errorf("%s: %s would not run with it: %w", file, experiment, refused)
		}
		return nil
	})
}
