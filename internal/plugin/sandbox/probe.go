package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/primus-fl/primus/internal/plugin"
)

// answer is a message of the child of a probe: the report of the library, sent once before and once
// after its ops were tried.
type answer struct {
	*plugin.Report
	Error string `json:"error,omitempty"` // what is wrong with the library
}

// Probe loads a library in a child process, asks every op whether it can run, calls those that can,
// and returns the report of the child. It returns an error if the library crashes or hangs there.
// If that happened in a call of an op, or if a call wrote to memory that it may not write, Probe
// returns the report together with the error.
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
		Leftover: func(n int) { left = n },
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

// ServeProbe does the work of the child of Probe. It loads the library, calls its ops through try,
// and reports. ok is false if there is something wrong with the library.
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
