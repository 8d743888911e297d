package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/primus-fl/primus/internal/plaintext"
)

// reportLine is a line that the child of Follow prints.
type reportLine struct {
	Said json.RawMessage `json:"said,omitempty"`
	Done bool            `json:"done,omitempty"`
}

// maxReport is longer than the report on any plugin.
const maxReport = 16 << 20

// Watch receives what a child does while it runs. Said, Step and Printed are called concurrently.
type Watch struct {
	// Said is called with each value that the child sends, as JSON. Follow returns its error.
	Said func(value []byte) error
	// Step, if it is not nil, is called with each step that the child begins.
	Step func(name string)
	// Printed, if it is not nil, is called with each line that the code of the plugin prints to its
	// standard error.
	Printed func(line string)
	// Leftover, if it is not nil, is called with the number of processes that the child left running
	// and that were ended.
	Leftover func(n int)
}

// Follow starts a child that calls Report, and returns when the child has ended. If its work was
// not done, the error says how the child ended and in which step; if ctx has ended, the error wraps
// the cause of ctx. Follow ignores Settings.Timeout.
func Follow(ctx context.Context, path string, set Settings, w Watch) error {
	c, err := newChild(ctx, set, path)
	if err != nil {
		return err
	}
	box := inbox{said: w.Said}
	c.cmd.Stdout = &box
	c.stderr.line = func(line string) {
		switch name, ok := strings.CutPrefix(line, stepMark); {
		case ok && w.Step != nil:
			w.Step(plaintext.Text(name))
		case !ok && w.Printed != nil && !strings.HasPrefix(line, "primus: ") && strings.TrimSpace(line) != "":
			w.Printed(plaintext.Text(line[:min(len(line), maxQuoted)]))
		}
	}
	if err := c.start(); err != nil {
		return err
	}
	waitErr := c.wait()
	if c.stderr.left > 0 && w.Leftover != nil {
		w.Leftover(c.stderr.left)
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w%s", context.Cause(ctx), in(c.stderr.step()))
	case box.err != nil:
		return box.err
	case waitErr != nil || !box.last.Done:
		return errors.New(c.death())
	}
	return nil
}

// inbox splits the output of a child into messages.
type inbox struct {
	said func([]byte) error
	part []byte
	last reportLine
	err  error
}

// Write implements io.Writer.
func (b *inbox) Write(p []byte) (int, error) {
	if b.err == nil {
		b.part = append(b.part, p...)
	}
	for b.err == nil {
		line, rest, ended := bytes.Cut(b.part, []byte("\n"))
		switch {
		case !ended && len(line) > maxReport:
			b.err = fmt.Errorf("its process printed a line of more than %d bytes", maxReport)
		case !ended:
			return len(p), nil
		default:
			b.part = rest
			b.err = b.take(line)
		}
	}
	return len(p), nil
}

func (b *inbox) take(line []byte) error {
	var m reportLine
	if err := json.Unmarshal(line, &m); err != nil {
		return fmt.Errorf("its process printed %.80q, want a report: %w", line, err)
	}
	b.last = m
	if m.Said == nil {
		return nil
	}
	return b.said(m.Said)
}

// Reporter sends messages from the child of Follow to its parent.
type Reporter struct {
	out     *json.Encoder
	read    func() []byte // what was printed to the standard output
	printed []byte        // the beginning of all that was
}

// Report calls work in the child of Follow and returns its error. It takes over the standard output
// of the process. Faults of a plugin are sent with Say.
func Report(work func(*Reporter) error) error {
	enterChild(1)
	out, err := takeStdout()
	if err != nil {
		return err
	}
	read, err := catchStdout()
	if err != nil {
		return err
	}
	r := &Reporter{out: json.NewEncoder(out), read: read}
	r.out.SetEscapeHTML(false)
	if err := work(r); err != nil {
		return err
	}
	return r.send(reportLine{Done: true})
}

// Step announces what runs next.
func (r *Reporter) Step(name string) {
	r.Printed()
	announceStep(name)
}

// Printed returns the first line that the code of the plugin has printed to the standard output, ""
// if it has printed none.
func (r *Reporter) Printed() string {
	if text := r.read(); len(r.printed) < maxQuoted {
		r.printed = append(r.printed, text[:min(len(text), maxQuoted)]...)
	}
	for line := range strings.Lines(string(r.printed)) {
		if line = strings.TrimSpace(line); line != "" {
			return plaintext.Text(line)
		}
	}
	return ""
}

// Say sends a value to the host.
func (r *Reporter) Say(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("sandbox: encode a report: %w", err)
	}
	return r.send(reportLine{Said: text})
}

func (r *Reporter) send(m reportLine) error {
	if err := r.out.Encode(m); err != nil {
		return fmt.Errorf("sandbox: print a report: %w", err)
	}
	return nil
}

var _ io.Writer = (*inbox)(nil)
