package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/primus-fl/primus/cmd/primus/settings"
	"github.com/primus-fl/primus/opmanager/oppolicy"
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
	env        environment    // nil for that of the process
	strict     bool           // a variable that has no effect is an error
	flags      policyFlags
}

// policyOptions are the flags of commands that need a policy.
type policyOptions struct {
	file  string
	given *pflag.Flag // that names the file; nil where a command has no such flag
	flags policyFlags
}

// addFlags gives a command the flags of a policy.
func (o *policyOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.file, "policy", "", "read the dispatch policy from a YAML `FILE`; train follows its changes")
	o.given = flags.Lookup("policy")
	o.flags.addFlags(flags)
}

// sources returns where the policy comes from, with the one of a module that is to be trained, if any.
func (o *policyOptions) sources(module *config.Module) policySources {
	s := policySources{file: o.file, fileSource: "flag --policy", experiment: module, env: environmentNow(), flags: o.flags}
	switch {
	case s.file == "":
		s.file, s.fileSource = os.Getenv("PRIMUS_POLICY"), "environment PRIMUS_POLICY"
	case o.given != nil:
		s.fileSource = settings.Origin(o.given)
	}
	return s
}

// load reads the policy file and returns the policy with all faults of all sources. The overlay is that of the file, nil
// when there is none.
func (s *policySources) load() (oppolicy.Policy, *policyfile.Overlay, error) {
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
func (s *policySources) over(documents ...*policyfile.Overlay) (oppolicy.Policy, error) {
	p := oppolicy.Default()
	for _, document := range documents {
		p = document.Apply(p)
	}
	experiment, experimentErr := experimentOverlay(s.experiment)
	p = experiment.Apply(p)
	p, envErr := p.Overlay(s.environment().lookup)
	logErr := oppolicy.CheckLogging(s.environment().lookup)
	p, flagsErr := s.flags.apply(p)
	if usage := errors.Join(envErr, logErr, flagsErr); usage != nil {
		return p, errors.Join(experimentErr, usageError{usage})
	}
	return p, experimentErr
}

// environment returns the variables that the policy is made of.
func (s *policySources) environment() environment {
	if s.env == nil {
		return environmentNow()
	}
	return s.env
}

func newPolicy(set appConfig) (oppolicy.Policy, *policyfile.Overlay, policyfile.Plugins, error) {
	p, file, err := set.policy.load()
	plugins, pluginsErr := set.policy.plugins(file)
	return p, file, plugins, errors.Join(err, pluginsErr, set.policy.checkVariables(set.log))
}
