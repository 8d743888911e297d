// Package dispatch finds the policy of a command: its flags, the variables of the environment, the
// policy file and the parameters of an experiment.
package dispatch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/settings"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/spf13/pflag"
)

// Sources is where the layers of the policy of a command come from that are known at its start:
// tuning file, policy file, experiment, environment and flags. The zero value is the environment of
// the process alone.
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

// OfModule returns the policy of an experiment's module by itself: no variable and no file of the
// environment counts.
func OfModule(m *config.Module) Sources { return Sources{experiment: m, Env: Environment{}} }

// Load reads the files and returns the layers of the policy with all faults of all sources. The
// second result is that of the policy file, nil when there is none.
func (s *Sources) Load(ctx context.Context) (layers opmanager.PolicyLayers, file *policyfile.Layer, err error) {
	if err := s.Tuning.load(); err != nil {
		return layers, nil, cli.UsageError{Err: err}
	}
	layers = opmanager.PolicyLayers{opmanager.LayerTuning: s.Tuning.layer()}
	var fileErr error
	if s.file != "" {
		if file, fileErr = policyfile.Read(ctx, s.file); fileErr == nil {
			layers[opmanager.LayerFile] = file.PolicyLayer
		}
		if _, unreadable := errors.AsType[*fs.PathError](fileErr); unreadable {
			fileErr = fmt.Errorf("%s: %w", s.fileSource, fileErr)
		}
	}
	experiment, experimentErr := experimentLayer(s.experiment)
	if experiment != nil {
		layers[opmanager.LayerExperiment] = experiment.PolicyLayer
	}
	environment, envErr := oppolicy.FromEnvironment(s.Environment().lookup)
	layers[opmanager.LayerEnvironment] = opmanager.PolicyLayer{Policy: environment, Origin: "environment"}
	logErr := oppolicy.CheckLogging(s.Environment().lookup)
	flags, flagsErr := s.Flags.policy()
	layers[opmanager.LayerFlags] = opmanager.PolicyLayer{Policy: flags, Origin: "flags"}
	policy := layers.Policy()
	if usage := errors.Join(envErr, logErr, flagsErr, policy.Contradiction()); usage != nil {
		err = cli.UsageError{Err: usage}
	}
	return layers, file, errors.Join(fileErr, experimentErr, err)
}

// Environment returns the variables of the policy.
func (s *Sources) Environment() Environment {
	if s.Env == nil {
		return environmentNow()
	}
	return s.Env
}
