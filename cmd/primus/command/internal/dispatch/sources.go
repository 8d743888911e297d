// Package dispatch finds the policy of a command: its flags, the variables of the environment, the
// policy file and the parameters of an experiment.
package dispatch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/settings"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/spf13/pflag"
)

// Sources is where the policy of a command comes from, later ones win: policy file, fleet,
// experiment, environment, flags. The zero value is the environment of the process alone.
type Sources struct {
	file       string         // "" for none
	fileSource string         // who names the file
	experiment *config.Module // nil for none
	Env        Environment    // nil for that of the process
	Strict     bool           // a variable that has no effect is an error
	Flags      Flags
	Tuning     *Tuning // nil for none
}

// Options are the flags of commands that need a policy.
type Options struct {
	File  string
	given *pflag.Flag // that names the file; nil where a command has no such flag
	Flags Flags
	Tune  string // the name of a tuning file, TuneAuto or TuneOff; "" is TuneOff
}

// AddFlags gives a command the flags of a policy.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.File, "policy", "", "read the dispatch policy from a YAML `FILE`; train follows its changes")
	o.given = flags.Lookup("policy")
	o.Flags.AddFlags(flags)
	flags.StringVar(&o.Tune, "tune", TuneOff, "choose impls by the tuning `FILE` of primus ops tune; off uses none, and with auto train measures first")
}

// Sources returns where the policy comes from, with the one of a module that is to be trained, if
// any.
func (o *Options) Sources(module *config.Module) Sources {
	s := Sources{file: o.File, fileSource: "flag --policy", experiment: module, Env: environmentNow(), Flags: o.Flags}
	if o.Tune != "" && o.Tune != TuneOff {
		s.Tuning = &Tuning{path: o.Tune}
	}
	switch {
	case s.file == "":
		s.file, s.fileSource = os.Getenv("PRIMUS_POLICY"), "environment PRIMUS_POLICY"
	case o.given != nil:
		s.fileSource = settings.Origin(o.given)
	}
	return s
}

// Load reads the policy file and returns the policy with all faults of all sources. The overlay is
// that of the file, nil when there is none.
func (s *Sources) Load() (oppolicy.Policy, *policyfile.Overlay, error) {
	if err := s.Tuning.load(); err != nil {
		return oppolicy.Default(), nil, cli.UsageError{Err: err}
	}
	if s.file == "" {
		p, err := s.Over()
		return p, nil, err
	}
	file, fileErr := policyfile.Read(s.file)
	if _, unreadable := errors.AsType[*fs.PathError](fileErr); unreadable {
		fileErr = fmt.Errorf("%s: %w", s.fileSource, fileErr)
	}
	p, err := s.Over(file)
	return p, file, errors.Join(fileErr, err)
}

// Over returns the policy with these documents in place of the policy file and the fleet.
func (s *Sources) Over(documents ...*policyfile.Overlay) (oppolicy.Policy, error) {
	p := oppolicy.Default()
	for _, document := range documents {
		p = document.Apply(p)
	}
	experiment, experimentErr := Overlay(s.experiment)
	p = experiment.Apply(p)
	p, envErr := p.Overlay(s.Environment().lookup)
	logErr := oppolicy.CheckLogging(s.Environment().lookup)
	p, flagsErr := s.Flags.apply(p)
	s.Tuning.apply(&p)
	if usage := errors.Join(envErr, logErr, flagsErr); usage != nil {
		return p, errors.Join(experimentErr, cli.UsageError{Err: usage})
	}
	return p, experimentErr
}

// Environment returns the variables of the policy.
func (s *Sources) Environment() Environment {
	if s.Env == nil {
		return environmentNow()
	}
	return s.Env
}
