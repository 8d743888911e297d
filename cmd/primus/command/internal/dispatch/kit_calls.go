package dispatch

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/recording"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opstest"
)

// KitCalls say which calls the conformance kit makes besides its own.
type KitCalls struct {
	thorough  bool
	recording []string
}

// AddFlags adds the flags of the options.
func (k *KitCalls) AddFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&k.thorough, "thorough", false, "call ops with the whole sizes of models, which takes minutes and gigabytes")
	flags.StringSliceVar(&k.recording, "recording", nil, "also run the calls in these `FILES` or directories of train --record-ops")
}

// Words returns the flags for a child process.
func (k *KitCalls) Words() []string {
	var words []string
	if k.thorough {
		words = append(words, "--thorough")
	}
	for _, path := range k.recording {
		words = append(words, "--recording", path)
	}
	return words
}

// Options returns the options of the kit, and the names of the ops of recorded calls.
func (k *KitCalls) Options(ctx context.Context, snap *opregistry.Snapshot) (options []opstest.Option, ops []string, err error) {
	if k.thorough {
		options = append(options, opstest.Thorough())
	}
	if len(k.recording) == 0 {
		return options, nil, nil
	}
	files, err := recording.Files(k.recording...)
	if err != nil {
		return nil, nil, cli.UsageError{Err: err}
	}
	for _, file := range files {
		c, err := recording.Open(ctx, file, snap)
		if err != nil {
			return nil, nil, err
		}
		args, err := c.Arguments()
		if err != nil {
			return nil, nil, err
		}
		options = append(options, opstest.WithCalls(opstest.NamedCall{Name: strings.TrimSuffix(filepath.Base(file), recording.Extension), Op: c.Op, Call: args}))
		if !slices.Contains(ops, c.Op.Name()) {
			ops = append(ops, c.Op.Name())
		}
	}
	return options, ops, nil
}
