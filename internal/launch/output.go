package launch

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/primus-fl/primus/internal/durable"
)

// output splits the output of the processes into lines of ranks.
type output struct {
	mu       sync.Mutex
	plan     *Plan
	set      Settings
	shown    func(rank int) bool
	ranks    map[int]*rankOutput
	torchrun []string    // its own lines
	pids     map[int]int // the processes of ranks that torchrun has started
	now      func() time.Time
	lastLine time.Time
	err      error // first error of writing a file of a rank
}

// rankOutput is the output of one rank.
type rankOutput struct {
	file *os.File
	tail []string // the last lines, at most traceLines

	raised time.Time // when it began to write its last traceback
}

func newOutput(plan *Plan, set Settings) (*output, error) {
	shown, err := parseRanks(plan.Ranks, plan.WorldSize)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(plan.LogDir, 0o755); err != nil {
		return nil, fmt.Errorf("directory of the ranks' output: %w", err)
	}
	now := plan.Now
	if now == nil {
		now = time.Now
	}
	return &output{plan: plan, set: set, shown: shown, ranks: map[int]*rankOutput{}, pids: map[int]int{}, now: now, lastLine: now()}, nil
}

// logFile is the file of a rank.
func (p *Plan) logFile(rank int) string {
	return filepath.Join(p.LogDir, fmt.Sprintf("rank-%d.log", rank))
}

// maxLine is the longest line; longer ones are split.
const maxLine = 1 << 20

// copyLines reads the output of a process until the process and its children have closed it.
func (o *output) copyLines(from io.Reader, of Process) {
	var pending []byte
	chunk := make([]byte, 64<<10)
	for {
		n, err := from.Read(chunk)
		pending = append(pending, chunk[:n]...)
		for {
			end := bytes.IndexAny(pending, "\n\r")
			if end < 0 {
				if len(pending) < maxLine {
					break
				}
				end = maxLine - 1
			}
			line := pending[:end]
			pending = pending[min(end+1, len(pending)):]
			if len(line) > 0 {
				o.line(of, string(line))
			}
		}
		if err != nil {
			if len(pending) > 0 {
				o.line(of, string(pending))
			}
			return
		}
	}
}

// line records a line of a process.
func (o *output) line(of Process, line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lastLine = o.now()
	if of.starts > 0 {
		o.torchrun = append(o.torchrun, line)
		o.show("torchrun", line)
		return
	}
	rank := of.Rank
	if number, ok := strings.CutPrefix(line, pidMark); ok && of.piped {
		if pid, err := strconv.Atoi(number); err == nil {
			o.pids[rank] = pid
			return
		}
	}
	r, err := o.rank(rank)
	if err == nil {
		_, err = r.file.WriteString(line + "\n")
	}
	if err != nil && o.err == nil {
		o.err = fmt.Errorf("output of rank %d: %w", rank, err)
	}
	if r != nil {
		r.tail = append(r.tail, line)
		if strings.Contains(line, traceback) {
			r.raised = o.lastLine
		}
		if len(r.tail) > 2*traceLines {
			r.tail = append(r.tail[:0], r.tail[len(r.tail)-traceLines:]...)
		}
	}
	taken := o.set.Line != nil && o.set.Line(rank, line)
	if !taken && o.shown(rank) {
		o.show(fmt.Sprintf("rank %d", rank), line)
	}
}

// show writes a line to the terminal.
func (o *output) show(who, line string) {
	if o.set.Show != nil {
		o.set.Show(who, strings.ToValidUTF8(line, "�"))
	}
}

// rank returns the output of a rank. The first call opens its file.
func (o *output) rank(rank int) (*rankOutput, error) {
	if r := o.ranks[rank]; r != nil {
		return r, nil
	}
	file, err := durable.OpenAppend(o.plan.logFile(rank))
	if err != nil {
		return nil, err
	}
	r := &rankOutput{file: file}
	o.ranks[rank] = r
	return r, nil
}

// silence returns the time since any rank has written a line.
func (o *output) silence() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.now().Sub(o.lastLine)
}

// raisedFirst returns the rank whose exception made the given one fail: a rank whose peer has gone
// can end before the peer itself. A traceback that is much older than that of the given rank was
// survived.
func (o *output) raisedFirst(failed int) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.ranks[failed]
	if f == nil || f.raised.IsZero() {
		return failed
	}
	first, at := failed, f.raised
	for rank, r := range o.ranks {
		if r.raised.Before(at) && f.raised.Sub(r.raised) < afterFailure {
			first, at = rank, r.raised
		}
	}
	return first
}

// tailOf returns the last lines of a rank.
func (o *output) tailOf(rank int) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := o.ranks[rank]
	if r == nil {
		return nil
	}
	return append([]string(nil), r.tail[max(0, len(r.tail)-traceLines):]...)
}

// pidOf returns the process of a rank that torchrun has started, 0 for unknown.
func (o *output) pidOf(rank int) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pids[rank]
}

// close closes the files and returns the first error of writing them.
func (o *output) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	err := o.err
	for rank, r := range o.ranks {
		if closeErr := r.file.Close(); err == nil && closeErr != nil {
			err = fmt.Errorf("output of rank %d: %w", rank, closeErr)
		}
	}
	return err
}

// The lines in which torchrun reports the rank that failed first.
var (
	rootCauseLine = regexp.MustCompile(`^Root Cause`)
	rootRank      = regexp.MustCompile(`^\s*rank\s*:\s*(\d+)`)
	rootCode      = regexp.MustCompile(`^\s*exitcode\s*:\s*(-?\d+)`)
)

// rootCause returns the rank that failed first according to torchrun, and its exit code, which is
// the negative number of the signal if a signal ended it.
func (o *output) rootCause() (rank, code int, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var seen, ranked bool
	for _, line := range o.torchrun {
		if rootCauseLine.MatchString(line) {
			seen, ranked = true, false
		}
		if !seen {
			continue
		}
		if m := rootRank.FindStringSubmatch(line); m != nil {
			rank, _ = strconv.Atoi(m[1]) // the pattern has digits only
			ranked = true
		}
		if m := rootCode.FindStringSubmatch(line); m != nil && ranked {
			code, _ = strconv.Atoi(m[1])
			return rank, code, true
		}
	}
	return 0, 0, false
}
