package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/primus-fl/primus/vendors/plugin"
)

// answer is what the child of a probe prints.
type answer struct {
	*plugin.Report
	Error string `json:"error,omitempty"` // why there is no report
}

// mostAnswer is more than the report of any plugin.
const mostAnswer = 16 << 20

// Probe loads a library in a child process, has every op say whether it can run, and
// returns what the child reports. A library that crashes or hangs there is an error.
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
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("probe plugin %s: %w", path, ctx.Err())
	case timed.Err() != nil:
		return nil, fmt.Errorf("plugin %s: it did not come back within %v%s", path, set.Timeout, in(step(c.stderr.String())))
	}
	var a answer
	switch err := json.Unmarshal(stdout.Bytes()[:min(stdout.Len(), mostAnswer)], &a); {
	case err == nil && a.Error != "":
		return nil, errors.New(a.Error)
	case waitErr != nil || stdout.Len() == 0:
		return nil, fmt.Errorf("plugin %s: %s", path, c.death())
	case err != nil || a.Report == nil:
		return nil, fmt.Errorf("plugin %s: its probe printed no report: %w", path, err)
	}
	return a.Report, nil
}

// ServeProbe is the child of Probe. It loads the library and prints the report, or
// why there is none, on the standard output as JSON. ok tells which.
func ServeProbe(path string, set plugin.Settings) (ok bool, err error) {
	watchLifeline()
	out, err := takeStdout()
	if err != nil {
		return false, err
	}
	var a answer
	set.Before = func(step string) { fmt.Fprintf(os.Stderr, "%s%s\n", stepMark, step) }
	if p, err := plugin.Open(path, set); err != nil {
		a.Error = err.Error()
	} else {
		r := p.Report()
		a.Report = &r
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(a); err != nil {
		return false, fmt.Errorf("sandbox: print the report: %w", err)
	}
	return a.Error == "", nil
}
