package elastic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/primus-fl/primus/internal/heartbeat"
)

// Settings describe a member.
type Settings struct {
	Member  int    // its number; 0 coordinates
	Members int    // in the first round
	Slots   int    // how many ranks it can run
	Address string // at which member 0 listens; unused when it is the only one
	Secret  string // of the job

	// Patience is how long members wait for each other at first; 0 means 10 minutes.
	Patience time.Duration

	// MaxRestarts bounds the rounds after the first one. That of member 0 counts.
	MaxRestarts int

	// ComeBack is how long a member that is gone is waited for; 0 means 15 seconds. That of member
	// 0 counts.
	ComeBack time.Duration

	// Grace is how long ranks have to end by themselves after a failure; 0 means 3 seconds.
	Grace time.Duration

	// Fit returns the largest number of ranks up to n that can train together, 0 for none. It is
	// asked when members are gone. That of member 0 counts; nil takes n.
	Fit func(n int) int

	// Port returns a port at which rank 0 can listen. It is called on member 0.
	Port func() (int, error)

	// Command returns the command of a rank. It is not yet started, and its environment has the
	// variables of the place.
	Command func(Place) *exec.Cmd

	// Log receives for whom a member waits, what happens between rounds, and why ranks have failed,
	// unless the error of Run says it. A text may have several lines. Calls may be concurrent.
	Log func(text string)
}

// Place is the place of a rank in a round.
type Place struct {
	Rank, Ranks, Local, Locals int
	Port                       int    // at which rank 0 listens
	Restarts, MaxRestarts      int    // rounds before this one, and how many there may be
	Reason                     string // why the round before this one ended
	ErrorFile                  string // where the rank may leave its error
}

// ErrInterrupted says that the ranks have ended because they were asked to.
var ErrInterrupted = errors.New("all ranks have ended")

// Failure says why a job has ended.
type Failure struct {
	Reason   string
	Restarts int  // how often the ranks were started again
	Usage    bool // the command line or the experiment is wrong
	Hung     bool // a rank was ended because it hung
}

// Error returns the reason, and how many restarts there were.
func (f *Failure) Error() string {
	switch f.Restarts {
	case 0:
		return f.Reason
	case 1:
		return f.Reason + "; there was one restart before"
	}
	return fmt.Sprintf("%s; there were %d restarts before", f.Reason, f.Restarts)
}

const (
	patience = 10 * time.Minute // Settings.Patience, unless it is set
	comeBack = 15 * time.Second // Settings.ComeBack, unless it is set
	endTime  = 3 * time.Second  // how long ranks have to end by themselves after a failure
)

// backlog is how many lines may wait for who reads them. A round has fewer, so that two sides never
// wait for each other.
const backlog = 64

// Run starts ranks until the job is over. When ctx ends, all ranks are asked to end.
func Run(ctx context.Context, s Settings) error {
	s.Patience = cmp.Or(s.Patience, patience)
	if s.Member > 0 {
		link, err := joinJob(ctx, s)
		if err != nil {
			return err
		}
		return newMember(s, link).run(ctx)
	}
	c := newCoordinator(s)
	if s.Members > 1 {
		listener, err := net.Listen("tcp", s.Address)
		if err != nil {
			return &Failure{Reason: fmt.Sprintf("listen for the other members: %v", err)}
		}
		defer func() { _ = listener.Close() }() // nobody is left to hear of it
		go c.listen(listener)
	}
	near, far := net.Pipe()
	go c.accept(far)
	over := make(chan struct{})
	go func() {
		defer close(over)
		c.run()
	}()
	link, err := heartbeat.Join(near, s.Secret, s.claim())
	if err != nil {
		return &Failure{Reason: err.Error()}
	}
	err = newMember(s, link).run(ctx)
	<-over
	return err
}

// joinJob connects with the coordinator, for which it waits.
func joinJob(ctx context.Context, s Settings) (*heartbeat.Conn, error) {
	limited, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	state := fmt.Sprintf("node %d of %d waits for node 0 at %s", s.Member, s.Members, s.Address)
	var words sync.WaitGroup
	defer words.Wait()
	connected := make(chan struct{})
	defer close(connected)
	words.Go(func() {
		w := newWords(s)
		defer w.timer.Stop()
		for {
			select {
			case <-connected:
				return
			case <-w.timer.C:
				w.say(state)
			}
		}
	})
	link, err := heartbeat.Dial(limited, s.Address, s.Secret, s.claim())
	switch {
	case err == nil:
		return link, nil
	case ctx.Err() != nil:
		return nil, ErrInterrupted
	case limited.Err() != nil:
		return nil, &Failure{Reason: fmt.Sprintf("%s: %s: %v", notMet(s), state, err)}
	}
	return nil, &Failure{Reason: fmt.Sprintf("join the job at %s: %v", s.Address, err)}
}

const (
	firstWord   = 5 * time.Second  // after which a member says for whom it waits
	furtherWord = 30 * time.Second // between the words that follow
)

// words says from time to time for whom a member waits.
type words struct {
	Settings
	begun time.Time
	timer *time.Timer // ends when it is time for the next word
}

func newWords(s Settings) *words {
	return &words{Settings: s, begun: time.Now(), timer: time.NewTimer(min(firstWord, s.Patience/2))}
}

func (w *words) say(state string) {
	w.Log(fmt.Sprintf("%s; given up after %v (--rendezvous-timeout), %v have passed", state, w.Patience, time.Since(w.begun).Round(time.Second)))
	w.timer.Reset(furtherWord)
}

// notMet says that members have waited for too long.
func notMet(s Settings) string {
	return fmt.Sprintf("the nodes have not met within %v (--rendezvous-timeout)", s.Patience)
}

// claimFormat is what a member says of itself.
const claimFormat = "member %d with %d ranks"

func (s *Settings) claim() string { return fmt.Sprintf(claimFormat, s.Member, s.Slots) }

// The first words of the lines between a member and the coordinator.
const (
	wordBegin     = "begin"     // a round: the ranks of the member follow
	wordStop      = "stop"      // end the ranks, one elsewhere has failed
	wordFinish    = "finish"    // the job is over: its outcome follows
	wordEnded     = "ended"     // the ranks of the member have ended: their outcome follows
	wordInterrupt = "interrupt" // the member was asked to end
)

// begin is how a round begins for a member.
type begin struct {
	First  int    `json:"first"` // of its ranks
	Count  int    `json:"count"`
	Ranks  int    `json:"ranks"` // of all members
	Port   int    `json:"port"`
	Round  int    `json:"round"` // from 0
	Rounds int    `json:"rounds"`
	Reason string `json:"reason"`
}

// The kinds of outcomes.
const (
	done        = "done"
	failed      = "failed"
	interrupted = "interrupted"
)

// outcome is how ranks have ended.
type outcome struct {
	Kind     string `json:"kind"`
	Ranks    []int  `json:"ranks,omitempty"` // that failed for this reason, if it is one of ranks
	Of       int    `json:"of,omitempty"`    // how many ranks there were
	Reason   string `json:"reason,omitempty"`
	Follows  bool   `json:"follows,omitempty"` // it failed because another one did
	Usage    bool   `json:"usage,omitempty"`
	Hung     bool   `json:"hung,omitempty"`
	Killed   bool   `json:"killed,omitempty"` // by somebody else, with SIGKILL
	Restarts int    `json:"restarts,omitempty"`
}

// worse reports whether the outcome explains more of a failure than another one.
func (o outcome) worse(than outcome) bool {
	if o.Kind != than.Kind {
		return o.Kind == failed || o.Kind == interrupted && than.Kind != failed
	}
	if o.Kind != failed {
		return false
	}
	if than.Follows != o.Follows {
		return than.Follows
	}
	if (than.Reason == endedByMember) != (o.Reason == endedByMember) {
		return than.Reason == endedByMember
	}
	return o.Killed && !than.Killed // libraries of MPI crash when another rank is gone
}

// endedByMember is the reason of a rank that a member has ended, because another one had failed.
const endedByMember = "it was ended"

// join adds an outcome to those that differ from it, or to one for the same reason.
func join(all []outcome, o outcome) []outcome {
	for i := range all {
		if a := &all[i]; a.Kind == o.Kind && a.Reason == o.Reason && a.Follows == o.Follows && len(a.Ranks) > 0 && len(o.Ranks) > 0 {
			a.Ranks = slices.Sorted(slices.Values(slices.Concat(a.Ranks, o.Ranks)))
			return all
		}
	}
	return append(all, o)
}

// worst returns the outcome that explains most, the first one of several.
func worst(all []outcome) outcome {
	found := outcome{Kind: done}
	for _, o := range all {
		if o.worse(found) {
			found = o
		}
	}
	return found
}

// text returns the reason with the ranks that failed for it.
func (o outcome) text() string {
	switch n := len(o.Ranks); {
	case n == 0:
		return o.Reason
	case n == 1:
		return fmt.Sprintf("rank %d of %d has failed: %s", o.Ranks[0], o.Of, o.Reason)
	case n == 2 && o.Of == 2:
		return "both ranks have failed: " + o.Reason
	case n == o.Of:
		return fmt.Sprintf("all %d ranks have failed: %s", n, o.Reason)
	}
	ranks := make([]string, len(o.Ranks))
	for i, r := range o.Ranks {
		ranks[i] = strconv.Itoa(r)
	}
	return fmt.Sprintf("ranks %s of %d have failed: %s", strings.Join(ranks, ", "), o.Of, o.Reason)
}

// firstLine returns the first line of a text.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// err returns the error of an outcome of the whole job.
func (o outcome) err() error {
	switch o.Kind {
	case done:
		return nil
	case interrupted:
		return ErrInterrupted
	}
	return &Failure{Reason: o.text(), Restarts: o.Restarts, Usage: o.Usage, Hung: o.Hung}
}
