package elastic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/primus-fl/primus/internal/heartbeat"
)

// exitInterrupted is the exit code of a rank that has ended because it was asked to.
const exitInterrupted = 130

// member starts ranks.
type member struct {
	Settings
	link  *heartbeat.Conn
	lines chan line
	ended chan end

	ranks   []*exec.Cmd // of the round
	place   begin
	left    int          // ranks that have not ended
	ends    []outcome    // of those that have
	timer   *time.Timer  // after which the ranks are killed; nil when they may go on
	killed  *atomic.Bool // whether that has happened
	dir     string       // of the error files
	aborted error        // the coordinator is gone
	asked   bool         // the ranks were asked to end
}

// line is what the coordinator says.
type line struct {
	word, rest string
	err        error
}

// end is how a rank has ended.
type end struct {
	local int
	err   error
}

func newMember(s Settings, link *heartbeat.Conn) *member {
	return &member{Settings: s, link: link, lines: make(chan line, backlog), ended: make(chan end)}
}

// run starts ranks when the coordinator says so, until the job is over.
func (m *member) run(ctx context.Context) error {
	defer m.link.Close()
	dir, err := os.MkdirTemp("", "primus-ranks-")
	if err != nil {
		return &Failure{Reason: fmt.Sprintf("a directory for the errors of ranks: %v", err)}
	}
	defer func() { _ = os.RemoveAll(dir) }() // it has nothing of value
	m.dir = dir
	over := make(chan struct{})
	defer close(over)
	go m.link.KeepAlive()
	go func() {
		for {
			word, rest, err := m.link.Receive()
			select {
			case m.lines <- line{word, rest, err}:
			case <-over:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	asked := ctx.Done()
	words := newWords(m.Settings)
	defer words.timer.Stop()
	for {
		select {
		case <-words.timer.C:
			if m.Member > 0 && m.ranks == nil && m.ends == nil { // node 0 says more
				words.say(fmt.Sprintf("node %d of %d has joined node 0 at %s, which waits for other nodes", m.Member, m.Members, m.Address))
			}
		case <-asked:
			asked, m.asked = nil, true
			m.signal(syscall.SIGTERM)
			m.link.Send(wordInterrupt, "")
		case l := <-m.lines:
			if l.err != nil {
				m.aborted = &Failure{Reason: fmt.Sprintf("node 0, which coordinates the job, is gone: %s", heartbeat.Reason(l.err))}
			}
			switch {
			case l.word == wordFinish:
				var o outcome
				if err := json.Unmarshal([]byte(l.rest), &o); err != nil {
					return &Failure{Reason: err.Error()}
				}
				m.explain(o.Reason)
				return o.err()
			case l.word == wordBegin:
				m.begin(l.rest)
			case l.word == wordStop || l.err != nil:
				m.killLater()
			}
		case e := <-m.ended:
			m.end(e)
		}
		if m.aborted != nil && m.left == 0 {
			return m.aborted
		}
	}
}

// begin starts the ranks of a round.
func (m *member) begin(text string) {
	m.place, m.ranks, m.timer, m.killed = begin{}, nil, nil, &atomic.Bool{}
	err := json.Unmarshal([]byte(text), &m.place)
	if m.Member > 0 {
		m.explain("") // node 0 has printed the reason of the restart
	} else {
		m.explain(m.place.Reason)
	}
	m.ends = nil
	if err != nil {
		m.report(outcome{Kind: failed, Reason: fmt.Sprintf("node %d: %v", m.Member, err)})
		return
	}
	for local := range m.place.Count {
		p := Place{
			Rank: m.place.First + local, Ranks: m.place.Ranks, Local: local, Locals: m.place.Count, Port: m.place.Port,
			Restarts: m.place.Round, MaxRestarts: m.place.Rounds, Reason: m.place.Reason, ErrorFile: m.errorFile(local),
		}
		_ = os.Remove(p.ErrorFile) // of the round before, if there is one
		cmd := m.Command(p)
		if err := cmd.Start(); err != nil {
			m.ends = append(m.ends, outcome{Kind: failed, Reason: fmt.Sprintf("start rank %d of %d: %v", p.Rank, p.Ranks, err)})
			break
		}
		m.ranks = append(m.ranks, cmd)
		m.left++
		go func() { m.ended <- end{local, cmd.Wait()} }()
	}
	if m.asked {
		m.signal(syscall.SIGTERM)
	}
	switch {
	case m.left == 0:
		m.report(worst(m.ends))
	case len(m.ends) > 0:
		m.killLater()
	}
}

func (m *member) errorFile(local int) string {
	return filepath.Join(m.dir, fmt.Sprintf("error-%d.json", local))
}

// signal sends a signal to all ranks.
func (m *member) signal(s syscall.Signal) {
	for _, cmd := range m.ranks {
		_ = cmd.Process.Signal(s) // it may have ended
	}
}

// killLater gives the ranks some time to end by themselves.
func (m *member) killLater() {
	if m.timer != nil || m.left == 0 {
		return
	}
	ranks, killed := m.ranks, m.killed
	m.timer = time.AfterFunc(cmp.Or(m.Grace, endTime), func() {
		killed.Store(true)
		for _, cmd := range ranks {
			_ = cmd.Process.Kill() // it may have ended
		}
	})
}

// end takes note of the end of a rank. When all have ended, the coordinator is told.
func (m *member) end(e end) {
	m.left--
	m.ends = join(m.ends, m.outcomeOf(e))
	end := worst(m.ends)
	if end.Kind == failed {
		m.killLater()
	}
	if m.left > 0 {
		return
	}
	if m.timer != nil {
		m.timer.Stop()
	}
	m.report(end)
}

// explain logs why ranks have failed, except for the reason that is printed for the whole job.
func (m *member) explain(printed string) {
	for _, o := range m.ends {
		if o.Kind == failed && o.Reason != endedByMember && !(m.asked && o.Follows) && (printed == "" || !strings.Contains(printed, firstLine(o.Reason))) {
			m.Log(o.text())
		}
	}
}

// report tells the coordinator how the ranks have ended.
func (m *member) report(o outcome) {
	text, err := json.Marshal(o)
	if err != nil {
		panic("BUG: elastic: " + err.Error())
	}
	m.link.Send(wordEnded, string(text))
}

// outcomeOf says how a rank has ended.
func (m *member) outcomeOf(e end) outcome {
	if e.err == nil {
		return outcome{Kind: done}
	}
	rank := m.place.First + e.local
	o := outcome{Kind: failed, Ranks: []int{rank}, Of: m.place.Ranks, Reason: e.err.Error()}
	if exit, ok := errors.AsType[*exec.ExitError](e.err); ok {
		switch exit.ExitCode() {
		case exitInterrupted:
			return outcome{Kind: interrupted}
		case -1: // a signal
			status, _ := exit.Sys().(syscall.WaitStatus)
			switch {
			case m.killed.Load():
				o.Reason, o.Follows = endedByMember, true
			case m.asked && status.Signal() == syscall.SIGTERM: // it came before the rank expects signals
				return outcome{Kind: interrupted}
			default:
				o.Killed = status.Signal() == syscall.SIGKILL
			}
		}
	}
	if left, err := ReadError(m.errorFile(e.local)); err == nil {
		// The message of a rank begins with its number.
		o.Reason = strings.TrimPrefix(left.Message, fmt.Sprintf("rank %d of %d: ", rank, m.place.Ranks))
		o.Follows, o.Usage, o.Hung = left.Follows, left.Usage, left.Hung
	}
	return o
}
