package elastic

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/primus-fl/primus/internal/heartbeat"
)

// coordinator decides when rounds begin. It belongs to the goroutine of run, to which those of
// connections send events.
type coordinator struct {
	Settings
	events chan event
	over   chan struct{} // closed when run returns
	close  func()        // closes over

	members map[int]*peer
	running bool
	round   int
	ends    []outcome // of the members of the round
	gone    bool      // a member was lost in the round
	stopped bool      // members were asked to end, there is no further round
	reason  string    // why the last round ended
	timer   *time.Timer
	words   *words // until the first round
	ended   bool
}

// peer is a member as the coordinator sees it.
type peer struct {
	number, slots int
	link          *heartbeat.Conn
	active        bool // it has ranks that have not ended
}

// event is something that happened on a connection: err is nil for a line.
type event struct {
	peer       *peer
	word, rest string
	err        error
}

// wordJoined is the word of the event of a new member.
const wordJoined = "joined"

func newCoordinator(s Settings) *coordinator {
	c := &coordinator{Settings: s, events: make(chan event, backlog), over: make(chan struct{}), members: map[int]*peer{}}
	c.close = sync.OnceFunc(func() { close(c.over) })
	return c
}

func (c *coordinator) listen(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go c.accept(conn)
	}
}

// accept passes on what a member says until it is gone.
func (c *coordinator) accept(conn net.Conn) {
	link, claim, err := heartbeat.Accept(conn, c.Secret)
	if err != nil {
		return // the member has been told
	}
	p := &peer{link: link}
	if n, _ := fmt.Sscanf(claim, claimFormat, &p.number, &p.slots); n != 2 || p.number < 0 || p.slots < 1 {
		link.Refuse(fmt.Errorf("given %q, want the number of a member and of its ranks", claim))
		return
	}
	if !c.send(event{peer: p, word: wordJoined}) {
		link.Refuse(errors.New("the job is over"))
		return
	}
	go link.KeepAlive()
	for {
		word, rest, err := link.Receive()
		if !c.send(event{p, word, rest, err}) || err != nil {
			link.Close()
			return
		}
	}
}

// send reports whether the event was received.
func (c *coordinator) send(e event) bool {
	select {
	case c.events <- e:
		return true
	case <-c.over:
		return false
	}
}

// run handles events until the job is over and all members know.
func (c *coordinator) run() {
	defer c.close()
	c.timer, c.words = time.NewTimer(c.Patience), newWords(c.Settings)
	defer c.timer.Stop()
	defer c.words.timer.Stop()
	for !c.ended || len(c.members) > 0 {
		select {
		case e := <-c.events:
			c.handle(e)
		case <-c.timer.C:
			if c.ended {
				return
			}
			c.begin()
		case <-c.words.timer.C:
			if c.round == 0 && !c.ended {
				c.words.say(c.waits())
			}
		}
	}
}

// waits says for whom the job waits.
func (c *coordinator) waits() string {
	var missing []int
	for n := range c.Members {
		if c.members[n] == nil {
			missing = append(missing, n)
		}
	}
	return fmt.Sprintf("node 0 of %d waits for %s; there: %s; node 0 listens at %s", c.Members, nodes(missing), nodes(slices.Sorted(maps.Keys(c.members))), c.Address)
}

// nodes names members.
func nodes(numbers []int) string {
	if len(numbers) == 1 {
		return fmt.Sprintf("node %d", numbers[0])
	}
	return "nodes " + strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers), " ", ", "), "[]")
}

func (c *coordinator) handle(e event) {
	p := e.peer
	switch {
	case e.word == wordJoined:
		c.admit(p)
	case c.members[p.number] != p: // it was refused
	case e.err != nil:
		c.lose(p, e.err)
	case e.word == wordInterrupt:
		if c.stopped = true; !c.running {
			c.finish(outcome{Kind: interrupted})
		}
	case e.word == wordEnded:
		var o outcome
		if err := json.Unmarshal([]byte(e.rest), &o); err != nil {
			o = outcome{Kind: failed, Reason: fmt.Sprintf("member %d: %v", p.number, err)}
		}
		p.active = false
		c.note(o)
	}
}

// admit takes a member in. It takes part from the next round on.
func (c *coordinator) admit(p *peer) {
	switch {
	case c.ended:
		p.link.Refuse(errors.New("the job is over"))
		return
	case c.members[p.number] != nil:
		p.link.Refuse(fmt.Errorf("there is a member %d already: each node needs a number of its own", p.number))
		return
	case c.round == 0 && p.number >= c.Members:
		p.link.Refuse(fmt.Errorf("given member %d, want one of %d, from 0", p.number, c.Members))
		return
	}
	c.members[p.number] = p
	p.link.Welcome()
	if !c.running && len(c.members) >= c.Members {
		c.begin()
	}
}

// lose handles the end of a connection.
func (c *coordinator) lose(p *peer, err error) {
	delete(c.members, p.number)
	if !p.active || c.ended {
		return
	}
	c.gone = true
	c.note(outcome{Kind: failed, Reason: fmt.Sprintf("node %d is gone: %s", p.number, heartbeat.Reason(err))})
}

// note takes note of how ranks have ended, and ends the round when all have.
func (c *coordinator) note(o outcome) {
	c.ends = join(c.ends, o)
	active := false
	for _, p := range c.members {
		if p.active {
			active = true
			if o.Kind == failed {
				p.link.Send(wordStop, "")
			}
		}
	}
	if !active {
		c.endRound()
	}
}

// endRound begins another round or ends the job.
func (c *coordinator) endRound() {
	o := worst(c.ends)
	if c.stopped && o.Follows {
		o = outcome{Kind: interrupted} // before the first step some ranks are told so by those that have left
	}
	c.running, c.ends = false, nil
	if o.Kind != failed || o.Usage || c.stopped || c.round > c.MaxRestarts {
		c.finish(o)
		return
	}
	c.reason = firstLine(o.text())
	c.Log(fmt.Sprintf("%s; the ranks start again from the last checkpoint (restart %d of %d)", o.text(), c.round, c.MaxRestarts))
	if c.gone && len(c.members) < c.Members {
		c.gone = false
		c.timer.Reset(cmp.Or(c.ComeBack, comeBack))
		return
	}
	c.begin()
}

// begin begins a round with the members that are there.
func (c *coordinator) begin() {
	numbers := slices.Sorted(maps.Keys(c.members))
	if c.round == 0 && len(numbers) < c.Members {
		c.finish(outcome{Kind: failed, Reason: notMet(c.Settings) + ": " + c.waits()})
		return
	}
	slots := 0
	for _, p := range c.members {
		slots += p.slots
	}
	ranks := slots
	if c.Fit != nil && c.round > 0 { // the first round is as it was asked for
		ranks = c.Fit(slots)
	}
	port, err := c.Port()
	switch {
	case err != nil:
		c.finish(outcome{Kind: failed, Reason: fmt.Sprintf("a port at which the ranks meet: %v", err)})
		return
	case ranks < 1:
		c.finish(outcome{Kind: failed, Reason: fmt.Sprintf("no number of ranks up to %d can train this experiment together", slots)})
		return
	case c.round > 0 && ranks < slots:
		c.Log(fmt.Sprintf("%d of %d ranks train: the batch cannot be divided among more", ranks, slots))
	}
	c.timer.Stop()
	c.running = true
	first := 0
	for _, number := range numbers {
		p := c.members[number]
		count := min(p.slots, ranks-first)
		if count == 0 {
			continue
		}
		p.active = true
		text, err := json.Marshal(begin{First: first, Count: count, Ranks: ranks, Port: port, Round: c.round, Rounds: c.MaxRestarts, Reason: c.reason})
		if err != nil {
			panic("BUG: elastic: " + err.Error())
		}
		p.link.Send(wordBegin, string(text))
		first += count
	}
	c.round++
}

// finish tells all members that the job is over. Those that do not hear it are waited for briefly.
func (c *coordinator) finish(o outcome) {
	if c.stopped && o.Kind == done {
		o.Kind = interrupted
	}
	o.Restarts = max(0, c.round-1)
	text, err := json.Marshal(o)
	if err != nil {
		panic("BUG: elastic: " + err.Error())
	}
	c.ended = true
	for _, p := range c.members {
		p.link.Send(wordFinish, string(text))
	}
	c.timer.Reset(endTime)
}
