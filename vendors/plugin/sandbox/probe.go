package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/primus-fl/primus/vendors/plugin"
)

// answer is a line that the child of a probe prints: what the library says about
// itself, and the same again when its ops were tried.
type answer struct {
	*plugin.Report
	Tried bool   `json:"tried"`
	Error string `json:"error,omitempty"` // why there is no report
}

// mostAnswer is more than the answers about any plugin.
const mostAnswer = 16 << 20

// Probe loads a library in a child process, has every op say whether it can run, calls
// those that can, and returns what the child reports. A library that crashes or hangs
// there is an error. When it was in a call of an op, or when a call wrote to memory that
// is not for it, the report comes with the error.
func Probe(ctx context.Context, path string, set Settings) (*plugin.Report, error) {
	timed, cancel := context.WithTimeout(ctx, set.Timeout)
	defer cancel()
	c, err := newChild(timed, set, path)
	if err != nil {
		return nil, err
	}
	stdout := &bytes.Buffer{}
	c.cmd.Stdout = stdout
	if err := c.start(); err != nil {
		return nil, fmt.Errorf("probe plugin %s: %w", path, err)
	}
	waitErr := c.wait()
	a, err := lastAnswer(stdout)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("probe plugin %s: %w", path, ctx.Err())
	case timed.Err() != nil:
		return a.Report, fmt.Errorf("plugin %s: it did not come back within %v%s", path, set.Timeout, in(step(c.stderr.String())))
	case a.Error != "":
		return a.Report, errors.New(a.Error)
	case waitErr != nil || err == nil && !a.Tried:
		return a.Report, fmt.Errorf("plugin %s: %s", path, c.death())
	case err != nil:
		return nil, fmt.Errorf("plugin %s: its probe printed no report: %w", path, err)
	}
	for _, o := range a.Ops {
		if o.Trial != nil && o.Trial.Stray != "" {
			return a.Report, fmt.Errorf("plugin %s: impl %q of op %q: %s", path, o.Impl, o.Op, o.Trial.Stray)
		}
	}
	return a.Report, nil
}

// lastAnswer returns the last answer of a child that is whole. The error says why there
// is none at all.
func lastAnswer(out *bytes.Buffer) (last answer, err error) {
	dec := json.NewDecoder(io.LimitReader(out, mostAnswer))
	for first := true; ; first = false {
		var a answer
		switch err := dec.Decode(&a); {
		case err == nil && a.Report == nil && a.Error == "":
			return last, errors.New("got an answer without one")
		case err == nil:
			last = a
		case first && !errors.Is(err, io.EOF):
			return last, err
		default:
			return last, nil
		}
	}
}

// ServeProbe is the child of Probe. It loads the library, has try call its ops, and
// prints the report, or why there is none, on the standard output as JSON. ok tells
// which.
func ServeProbe(path string, set plugin.Settings, try plugin.Tryer) (ok bool, err error) {
	watchLifeline()
	out, err := takeStdout()
	if err != nil {
		return false, err
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	say := func(a answer) error {
		if err := enc.Encode(a); err != nil {
			return fmt.Errorf("sandbox: print the report: %w", err)
		}
		return nil
	}
	set.Before = func(step string) { fmt.Fprintf(os.Stderr, "%s%s\n", stepMark, step) }
	p, err := plugin.Open(path, set)
	if err != nil {
		return false, say(answer{Error: err.Error()})
	}
	r := p.Report()
	if err := say(answer{Report: &r}); err != nil {
		return false, err
	}
	if err := p.Try(try, &r); err != nil {
		return false, say(answer{Report: &r, Error: fmt.Sprintf("plugin %s: %v", path, err)})
	}
	return true, say(answer{Report: &r, Tried: true})
}
