package native

import (
	"errors"
	"slices"
	"strconv"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/native/architecture"
	"github.com/primus-fl/primus/runtime/backend"
)

// ConvertConfig returns the parameters of the trainer unchanged and warns about parameters without
// effect.
func (adapter) ConvertConfig(tc *backend.TrainContext) (*backend.Args, []document.Warning, error) {
	unknown, err := unknownParams(tc)
	if err != nil {
		return nil, nil, err
	}
	var warnings []document.Warning
	var left []string
	for _, u := range unknown {
		left = append(left, u.Path)
		if !noEffect(tc, u) {
			continue
		}
		w := document.Warning{Origin: u.Origin, Path: u.Path, Message: "the native backend has no such parameter, so it has no effect"}
		switch {
		case u.Path == "model":
			w.Hint = "the experiment chooses the model preset"
		case u.Nearest != "":
			w.Hint = "did you mean " + strconv.Quote(u.Nearest) + "?"
		}
		warnings = append(warnings, w)
	}
	return backend.NewArgs(tc.Module.Params, left...), warnings, nil
}

// unknownParams returns the parameters of the module that Args does not have.
func unknownParams(tc *backend.TrainContext) ([]document.UnknownKey, error) {
	return document.Decode(tc.Module.Params.Without(architecture.WindowsParam), &Args{}) // which may be a number
}

// noEffect reports whether a parameter that Args does not have is without any effect, since nothing
// reads it.
func noEffect(tc *backend.TrainContext, u document.UnknownKey) bool {
	model := u.Path == "model" && u.Origin.Token == "" // of the experiment
	return !model && !backend.IsRuntimeParam(u.Path) && !Known(u.Path) && !readByPatch(tc, u.Path)
}

func readByPatch(tc *backend.TrainContext, name string) bool {
	return tc.PatchKey != nil && tc.PatchKey(name)
}

// refusals returns an error for each parameter that asks for something that the trainer does not
// do.
func refusals(tc *backend.TrainContext, a *Args) (refused, err error) {
	unknown, err := unknownParams(tc)
	if err != nil {
		return nil, err
	}
	run := Run{Config: a.Config}
	var faults []error
	for _, u := range unknown {
		if v, given := tc.Module.Params.Lookup(u.Path); given && !readByPatch(tc, u.Path) {
			faults = append(faults, Check(u.Path, v, run))
		}
	}
	return errors.Join(faults...), nil
}

// ignored returns the names of the parameters without effect, sorted.
func ignored(tc *backend.TrainContext) []string {
	unknown, _ := unknownParams(tc) // ConvertConfig has returned the error
	var names []string
	for _, u := range unknown {
		if noEffect(tc, u) {
			names = append(names, u.Path)
		}
	}
	slices.Sort(names)
	return names
}
