package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/primus-fl/primus/vendors/plugin"
)

// answer is what the child of a probe says: what the library says about itself, and the
// same again when its ops were tried.
type answer struct {
	*plugin.Report
	Error string `json:"error,omitempty"` // what is wrong with the library
}

// Probe loads a library in a child process, has every op say whether it can run, calls
// those that can, and returns what the child reports. A library that crashes or hangs
// there is an error. When it was in a call of an op, or when a call wrote to memory that
// is not for it, the report comes with the error.
func Probe(ctx context.Context, path string, set Settings) (*plugin.Report, error) {
	timed, cancel := context.WithTimeoutCause(ctx, set.Timeout, fmt.Errorf("it did not come back within %v", set.Timeout))
	defer cancel()
	var last answer
	left := 0
	err := Follow(timed, path, set, Watch{
		Said: func(value []byte) error {
			last = answer{}
			return json.Unmarshal(value, &last)
		},
		Left: func(n int) { left = n },
	})
	if last.Report != nil {
		last.Processes = left
	}
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("probe plugin %s: %w", path, ctx.Err())
	case last.Error != "":
		return last.Report, errors.New(last.Error)
	case err != nil:
		return last.Report, fmt.Errorf("plugin %s: %w", path, err)
	case last.Report == nil:
		return nil, fmt.Errorf("plugin %s: its probe printed no report", path)
	}
	for _, o := range last.Ops {
		if o.Trial != nil && o.Trial.Stray != "" {
			return last.Report, fmt.Errorf("plugin %s: impl %q of op %q: %s", path, o.Impl, o.Op, o.Trial.Stray)
		}
	}
	return last.Report, nil
}

// ServeProbe is the child of Probe. It loads the library, has try call its ops, and
// reports what it finds. ok is false when there is something wrong with the library.
func ServeProbe(path string, set plugin.Settings, try plugin.Tryer) (ok bool, err error) {
	err = Report(func(r *Reporter) error {
		set.Before = r.Step
		p, err := plugin.Open(path, set)
		if err != nil {
			return r.Say(answer{Error: err.Error()})
		}
		found := p.Report()
		if err := r.Say(answer{Report: &found}); err != nil {
			return err
		}
		if err := p.Try(try, &found); err != nil {
			return r.Say(answer{Report: &found, Error: fmt.Sprintf("plugin %s: %v", path, err)})
		}
		ok = true
		return r.Say(answer{Report: &found})
	})
	return ok, err
}
