package experiments

import (
	"os"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/dispatch"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Stage is what a command trains: how the backend calls it, and the module of the experiment that
// holds its parameters.
type Stage struct{ name, Module string }

// The stages of training.
var (
	Pretrain  = Stage{"pretrain", "pre_trainer"}
	Posttrain = Stage{"posttrain", "post_trainer"}
)

// TrainingOptions are the flags that say what is trained and with what.
type TrainingOptions struct {
	Options
	Threads uint
	policy  dispatch.Options
}

// AddFlags gives a command the flags.
func (o *TrainingOptions) AddFlags(flags *pflag.FlagSet) {
	o.Options.AddFlags(flags)
	flags.UintVar(&o.Threads, "threads", 0, "`N` CPU threads for ops; 0 is one per CPU")
	o.policy.AddFlags(flags)
}

// Tune returns the value of --tune.
func (o *TrainingOptions) Tune() string { return o.policy.Tune }

// SetTune replaces the value of --tune.
func (o *TrainingOptions) SetTune(file string) { o.policy.Tune = file }

// Check returns the first mistake in the options.
func (o *TrainingOptions) Check(cmd *cobra.Command, overrides []string) error {
	if err := o.Options.Check(cmd, overrides); err != nil {
		return err
	}
	return CheckLogging()
}

// CheckLogging returns what is wrong with the variables of the log of dispatch.
func CheckLogging() error {
	if err := oppolicy.CheckLogging(os.LookupEnv); err != nil {
		return cli.UsageError{Err: err}
	}
	return nil
}

// PolicySources returns where the policy of the module to train comes from.
func (o *TrainingOptions) PolicySources(module *config.Module) dispatch.Sources {
	s := o.policy.Sources(module)
	s.Strict = o.strict
	return s
}
