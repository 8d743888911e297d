package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/native/architecture"
	"github.com/primus-fl/primus/runtime/backend"
)

// Framework is the name that experiments use for this backend.
const Framework = "native"

// Version is the version of the backend, which patches may ask for: that of the release.
const Version = "0.2.0"

// Factory returns the factory of the native backend.
func Factory() backend.Factory {
	return backend.Factory{
		Framework: Framework, Description: "trains in this process, every op dispatched",
		New: func() backend.Adapter { return adapter{} },
	}
}

type adapter struct{}

// trainers are the trainer classes of the backend.
var trainers = backend.Trainers{
	{Stage: stagePretrain, Name: "NativePretrainTrainer", New: newTrainer},
	{Stage: stageSFT, Name: "NativeSFTTrainer", New: newTrainer},
	{Stage: stageDPO, Name: "NativeDPOTrainer", New: newTrainer},
}

func (adapter) SetupPath(given string, tc *backend.TrainContext) (backend.Paths, error) {
	if given != "" {
		return backend.Paths{}, fmt.Errorf("framework native: it is compiled in, but --backend-path says %q", given)
	}
	return backend.Paths{}, nil
}

// Parameters implements backend.ParameterLister.
func (adapter) Parameters() []document.Parameter { return document.Parameters(&Args{}) }

// Needs implements backend.InProcess.
func (adapter) Needs(args *backend.Args) backend.Needs {
	a := &Args{}
	_, _ = document.Decode(args.Map().Without(architecture.WindowsParam), a) // newArgs reports what is wrong
	n := backend.Needs{CollectiveTimeout: a.Timeout(), Overlap: a.Overlaps(), ScaledLoss: a.FP16}
	const device = "device"
	v, _ := args.Lookup(device)
	source := cmp.Or(v.Origin().String(), args.SetBy(device))
	if n.DeviceSource = source + ": " + device; strings.TrimSpace(a.Device) != "" {
		n.Device = a.Device
	}
	return n
}

func (adapter) Prepare(context.Context, *backend.TrainContext) error { return nil }

func (adapter) DetectVersion(*backend.TrainContext) (string, error) { return Version, nil }

func (adapter) LoadTrainer(stage, class string) (backend.TrainerClass, error) {
	return trainers.Load(Framework, stage, class)
}

func (adapter) Stages() []string { return trainers.Stages() }

// describe prefixes each fault with the place where the value of its key was written, or with the
// one who set it.
func describe(tc *backend.TrainContext, err error) error {
	faults := flatten(err)
	for i, fault := range faults {
		key, _, _ := strings.Cut(fault.Error(), ":")
		where := tc.Args.SetBy(key)
		v, ok := tc.Args.Lookup(key)
		if !ok {
			v, _ = tc.Module.Params.Lookup(key)
		}
		if !v.Origin().IsZero() {
			where = v.Origin().String()
		}
		if where != "" {
			where += ": "
		}
		faults[i] = fmt.Errorf("%smodules.%s.%w", where, tc.Module.Name, fault)
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

var (
	_ backend.Adapter   = adapter{}
	_ backend.InProcess = adapter{}
)
