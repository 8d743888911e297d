package native

import (
	"errors"
	"fmt"
	"strings"

	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/config"
)

// Framework is the name that experiments use for this backend.
const Framework = "native"

// Adapter is the adapter of the native backend.
type Adapter struct{}

// Framework returns "native".
func (Adapter) Framework() string { return Framework }

// ConvertConfig returns the *Args of the module.
func (Adapter) ConvertConfig(m *config.Module) (any, []config.Warning, error) {
	a, warnings, err := convert(m)
	if err != nil {
		return nil, warnings, err
	}
	return a, warnings, nil
}

// NewTrainer returns the trainer of a stage; there is pretrain only.
func (Adapter) NewTrainer(stage string, args any, tc backend.TrainContext) (backend.Trainer, error) {
	if stage != "pretrain" {
		return nil, fmt.Errorf("framework native: got stage %q, want pretrain", stage)
	}
	return newTrainer(args.(*Args), tc), nil
}

// describe puts in front of each fault where the value of its key was written.
func describe(m *config.Module, err error) error {
	faults := flatten(err)
	for i, fault := range faults {
		key, _, _ := strings.Cut(fault.Error(), ":")
		if origin, ok := m.Params.Origin(key); ok {
			faults[i] = fmt.Errorf("%s: modules.%s.%w", origin, m.Name, fault)
		} else {
			faults[i] = fmt.Errorf("modules.%s.%w", m.Name, fault)
		}
	}
	return errors.Join(faults...)
}

// flatten returns the errors that errors.Join has joined, at any depth.
func flatten(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, flatten(e)...)
	}
	return all
}

var _ backend.Adapter = Adapter{}
