// Package meter bounds what reading something from outside may cost.
//
// # Concepts
//
// A Meter has a Budget for one request, file or repository. What reads it spends steps from it, and
// bytes before it allocates memory whose size the input gives; a step is a small and bounded piece
// of work. The context is asked every few thousand steps, and whenever a Reader of the meter is
// read, so that work ends soon after nobody waits for it.
//
// A file that somebody chose has no limit of time: a disk may be slow, and an interrupt ends the
// wait.
//
// # Concurrency
//
// A Meter belongs to one goroutine.
//
// # Errors
//
// Spend and the others return an *Error when the budget is used up, and the cause of a context that
// has ended. Further calls return the same.
package meter

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"
)

// Budget is what one thing may cost. Zero sets no limit.
type Budget struct {
	Steps int
	Unit  string // what errors call steps; "" means steps
	Bytes int64
	Time  time.Duration
}

// Error says that a budget is used up.
type Error struct {
	What   string // what was read
	Limit  string // such as "3000000 steps"
	Remedy string // what to do
}

// Error names what was read, the limit and the remedy.
func (e *Error) Error() string {
	return fmt.Sprintf("%s takes more than %s: %s", e.What, e.Limit, e.Remedy)
}

// Meter counts what is spent of a budget.
type Meter struct {
	ctx          context.Context
	what, remedy string
	budget       Budget
	begin        time.Time
	spent, look  int // look is when the clock and the context are looked at
	bytes        int64
	err          error
}

// between is how many steps are spent between two looks at the clock and the context.
const between = 4096

// New returns a Meter for what is read. The remedy says what a user does when the budget is used
// up.
func New(ctx context.Context, what, remedy string, b Budget) *Meter {
	return &Meter{ctx: ctx, what: what, remedy: remedy, budget: b, begin: time.Now()}
}

// Spend counts steps.
func (m *Meter) Spend(steps int) error {
	if m.err != nil {
		return m.err
	}
	m.spent += steps
	if m.budget.Steps > 0 && m.spent > m.budget.Steps {
		m.err = &Error{m.what, fmt.Sprintf("%d %s", m.budget.Steps, cmp.Or(m.budget.Unit, "steps")), m.remedy}
		return m.err
	}
	if m.spent < m.look {
		return nil
	}
	return m.Check()
}

// Allocate counts bytes that are allocated next.
func (m *Meter) Allocate(bytes int64) error {
	if m.err != nil {
		return m.err
	}
	if m.bytes += bytes; m.budget.Bytes > 0 && (m.bytes > m.budget.Bytes || m.bytes < 0 || bytes < 0) {
		m.err = &Error{m.what, fmt.Sprintf("%d bytes", m.budget.Bytes), m.remedy}
	}
	return m.err
}

// Check looks at the clock and the context now.
func (m *Meter) Check() error {
	if m.err != nil {
		return m.err
	}
	m.look = m.spent + between
	if m.ctx.Err() != nil {
		m.err = fmt.Errorf("%s: %w", m.what, context.Cause(m.ctx))
	} else if m.budget.Time > 0 && time.Since(m.begin) > m.budget.Time {
		m.err = &Error{m.what, m.budget.Time.String(), m.remedy}
	}
	return m.err
}

// Err returns the error that a call before has returned.
func (m *Meter) Err() error { return m.err }

// chunk is how many bytes are read between two looks at the clock and the context.
const chunk = 1 << 20

// Reader returns a reader of r that gives the error of the meter once there is one.
func (m *Meter) Reader(r io.Reader) io.Reader { return &reader{m, r} }

type reader struct {
	m *Meter
	r io.Reader
}

func (r *reader) Read(b []byte) (int, error) {
	if err := r.m.Check(); err != nil {
		return 0, err
	}
	return r.r.Read(b[:min(len(b), chunk)])
}

// ReaderAt returns r whose reads end soon after the context does. It may be used by several
// goroutines.
func ReaderAt(ctx context.Context, r io.ReaderAt) io.ReaderAt { return readerAt{ctx, r} }

type readerAt struct {
	ctx context.Context
	r   io.ReaderAt
}

func (r readerAt) ReadAt(b []byte, off int64) (n int, err error) {
	for more := true; more && err == nil; more = n < len(b) {
		if r.ctx.Err() != nil {
			return n, context.Cause(r.ctx)
		}
		var got int
		got, err = r.r.ReadAt(b[n:min(len(b), n+chunk)], off+int64(n))
		n += got
	}
	return n, err
}

// ReadAt fills b with the bytes of r from an offset on. Fewer are an io.ErrUnexpectedEOF.
func (m *Meter) ReadAt(r io.ReaderAt, b []byte, off int64) error {
	_, err := io.ReadFull(m.Reader(io.NewSectionReader(r, off, int64(len(b)))), b)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}
