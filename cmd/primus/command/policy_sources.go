package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/spf13/pflag"
)

// policySources is where the policy of a command comes from, later ones win: policy file, fleet, experiment, environment,
// flags.
// The zero value is the environment of the process alone.
type policySources struct {
	file       string         // "" for none
	fileSource string         // who names the file
	experiment *config.Module // nil for none
	lookup     func(string) (string, bool)
	flags      policyFlags
}

// policyOptions are the flags of commands that need a policy.
type policyOptions struct {
	file  string
	flags policyFlags
}

// addFlags gives a command the flags of a policy.
func (o *policyOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.file, "policy", "", "read the dispatch policy from a YAML `FILE`; train follows its changes")
	o.flags.addFlags(flags)
}

// sources returns where the policy comes from, with the one of a module that is to be trained, if any.
func (o *policyOptions) sources(module *config.Module) policySources {
	s := policySources{file: o.file, fileSource: "flag --policy", experiment: module, lookup: environmentNow(), flags: o.flags}
	if s.file == "" {
		s.file, s.fileSource = os.Getenv("PRIMUS_POLICY"), "environment PRIMUS_POLICY"
	}
	return s
}

// load reads the policy file and returns the policy with all faults of all sources. The overlay is that of the file, nil
// when there is none.
func (s *policySources) load() (opmanager.Policy, *policyfile.Overlay, error) {
	if s.file == "" {
		p, err := s.over()
		return p, nil, err
	}
	file, fileErr := policyfile.Read(s.file)
	if _, unreadable := errors.AsType[*fs.PathError](fileErr); unreadable {
		fileErr = fmt.Errorf("%s: %w", s.fileSource, fileErr)
	}
	p, err := s.over(file)
	return p, file, errors.Join(fileErr, err)
}

// over returns the policy that has these documents where policy file and fleet belong.
func (s *policySources) over(documents ...*policyfile.Overlay) (opmanager.Policy, error) {
	lookup := s.lookup
	if lookup == nil {
		lookup = os.LookupEnv
	}
	p := opmanager.DefaultPolicy()
	for _, document := range documents {
		p = document.Apply(p)
	}
	experiment, experimentErr := experimentOverlay(s.experiment)
	p = experiment.Apply(p)
	p, envErr := p.Overlay(lookup)
	p, flagsErr := s.flags.apply(p)
	if usage := errors.Join(envErr, flagsErr); usage != nil {
		return p, errors.Join(experimentErr, usageError{usage})
	}
	return p, experimentErr
}

// environmentNow returns the variables of a policy as they are now: the environment is read once, at the start.
func environmentNow() func(string) (string, bool) {
	values := map[string]string{}
	for _, name := range []string{
		opmanager.EnvPrefer, opmanager.EnvPreferVendor, opmanager.EnvStrict, opmanager.EnvAllow, opmanager.EnvDeny,
		opmanager.EnvPerOp, opmanager.EnvSkipCUDA, envPluginModules,
	} {
		if value, ok := os.LookupEnv(name); ok {
			values[name] = value
		}
	}
	return func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}
}

func newPolicy(set appConfig) (opmanager.Policy, *policyfile.Overlay, policyfile.Plugins, error) {
	p, file, err := set.policy.load()
	plugins, pluginsErr := set.policy.plugins(file)
	return p, file, plugins, errors.Join(err, pluginsErr)
}
