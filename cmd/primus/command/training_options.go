package command

import (
	"os"

	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// stage is what a command trains: how the backend calls it, and the module of the experiment that holds its parameters.
type stage struct{ name, module string }

// The stages of training.
var (
	pretrain  = stage{"pretrain", "pre_trainer"}
	posttrain = stage{"posttrain", "post_trainer"}
)

// trainingOptions are the flags that say what is trained and with what.
type trainingOptions struct {
	experimentOptions
	threads uint
	policy  policyOptions
}

// addFlags gives a command the flags.
func (o *trainingOptions) addFlags(flags *pflag.FlagSet) {
	o.experimentOptions.addFlags(flags)
	flags.UintVar(&o.threads, "threads", 0, "`N` CPU threads for ops; 0 is one a CPU")
	o.policy.addFlags(flags)
}

// check returns the first mistake in the options.
func (o *trainingOptions) check(cmd *cobra.Command, overrides []string) error {
	if err := o.experimentOptions.check(cmd, overrides); err != nil {
		return err
	}
	return checkLogging()
}

// checkLogging returns what is wrong with the variables of the log of dispatch.
func checkLogging() error {
	if err := oppolicy.CheckLogging(os.LookupEnv); err != nil {
		return usageError{err}
	}
	return nil
}

// policySources returns where the policy of the module to train comes from.
func (o *trainingOptions) policySources(module *config.Module) policySources {
	s := o.policy.sources(module)
	s.strict = o.strict
	return s
}
