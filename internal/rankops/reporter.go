package rankops

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/primus-fl/primus/runtime/backend"
)

// Reporter sends what an op manager does to a Collector, and puts the policy in force that comes
// back. It must be a listener of the manager from the beginning.
type Reporter struct {
	manager *opmanager.Manager
	conn    net.Conn
	warn    func(string)
	stop    chan struct{}
	done    sync.WaitGroup
	close   sync.Once

	mu     sync.Mutex
	events []event
	at     map[event]int // the index in events; Times is 0 in the key

	ended atomic.Bool // nothing is kept or sent any more

	sending sync.Mutex                      // held while a report is made and sent
	sent    map[[2]string]backend.RankCalls // the counts that were sent, by op and impl
}

// interval is how often counts are sent, and answer how long a Collector may take to read.
const (
	interval = time.Second
	answer   = 5 * time.Second
)

// OnEvent keeps an event for the next report. It implements opmanager.Listener.
func (r *Reporter) OnEvent(e opmanager.Event) {
	wire, ok := encode(e)
	if !ok || r.ended.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	i, ok := r.at[wire]
	if !ok {
		if r.at == nil {
			r.at = map[event]int{}
		}
		i = len(r.events)
		r.at[wire] = i
		r.events = append(r.events, wire)
	}
	r.events[i].Times++
}

// Start connects to the Collector at a socket for a process with the rank of its environment, and
// reports what the manager does until Close. The first policy is in force when it returns, unless
// the Collector has none to send. Warnings go to warn.
func (r *Reporter) Start(ctx context.Context, socket, rank string, manager *opmanager.Manager, warn func(string)) error {
	r.manager, r.warn, r.stop, r.sent = manager, warn, make(chan struct{}), map[[2]string]backend.RankCalls{}
	lines, err := r.connect(ctx, socket, rank)
	if err != nil {
		r.ended.Store(true)
		return fmt.Errorf("%s=%s: %w", Variable, socket, err)
	}
	r.done.Go(func() {
		for lines.Scan() {
			r.obey(lines.Bytes())
		}
	})
	r.done.Go(r.run)
	return nil
}

// connect introduces the process, and puts the first policy in force.
func (r *Reporter) connect(ctx context.Context, socket, rank string) (*bufio.Scanner, error) {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	r.conn = conn
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, maxLine)
	conn.SetDeadline(time.Now().Add(answer))
	err = r.send(hello{protocol, buildinfo.Version(), rank})
	if err == nil && !lines.Scan() {
		err = cmp.Or(lines.Err(), errors.New("primus has closed the connection; its log says why"))
	}
	if err != nil {
		conn.Close()
		r.conn = nil
		return nil, err
	}
	conn.SetDeadline(time.Time{})
	r.obey(lines.Bytes())
	return lines, nil
}

// run sends reports until Close.
func (r *Reporter) run() {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-r.stop:
			return
		case <-tick.C:
			r.report("")
		}
	}
}

// obey puts a policy in force, or says why it cannot be.
func (r *Reporter) obey(line []byte) {
	var o order
	if err := json.Unmarshal(line, &o); err != nil {
		r.report("line of primus: " + err.Error())
		return
	}
	layer := opmanager.PolicyLayer{}
	if o.Policy != "" {
		parsed, err := policyfile.Parse(context.Background(), "policy of the run", []byte(o.Policy))
		if err != nil {
			r.report(err.Error())
			return
		}
		layer = parsed.PolicyLayer
	}
	if _, err := r.manager.PolicyStack().Set(opmanager.LayerService, layer); err != nil {
		r.report(err.Error())
	}
}

// report sends what has happened since the last report.
func (r *Reporter) report(refused string) {
	r.sending.Lock()
	defer r.sending.Unlock()
	if r.ended.Load() {
		return
	}
	out := report{Refused: refused, Calls: r.calls()}
	r.mu.Lock()
	events := r.events
	r.events, r.at = nil, nil
	r.mu.Unlock()
	for {
		out.Events, events = split(events)
		if out.Refused == "" && len(out.Events)+len(out.Calls) == 0 {
			return
		}
		r.conn.SetWriteDeadline(time.Now().Add(answer))
		if err := r.send(out); err != nil {
			r.ended.Store(true)
			r.warn(fmt.Sprintf("primus no longer learns what ops this process calls: %v", err))
			return
		}
		out = report{}
	}
}

// split returns the events that one report may hold, and those that are left.
func split(events []event) (now, later []event) {
	left := uint64(mostTimes)
	for i, e := range events {
		if e.Times <= left {
			left -= e.Times
			continue
		}
		now, later = slices.Clone(events[:i]), slices.Clone(events[i:])
		if left > 0 {
			e.Times = left
			now = append(now, e)
			later[0].Times -= left
		}
		return now, later
	}
	return events, nil
}

// calls returns the counts that have changed since the last report.
func (r *Reporter) calls() []backend.RankCalls {
	var changed []backend.RankCalls
	for _, s := range r.manager.Stats() {
		key := [2]string{s.Op, s.ID}
		before := r.sent[key]
		now := backend.RankCalls{Op: s.Op, ImplInfo: s.ImplInfo, Calls: s.Calls, Declines: s.Declines, Duration: s.Duration}
		if now.Calls == before.Calls && now.Declines == before.Declines {
			continue
		}
		r.sent[key] = now
		now.Calls -= before.Calls
		now.Declines -= before.Declines
		now.Duration = max(now.Duration-before.Duration, 0) // an estimate may shrink
		changed = append(changed, now)
	}
	return changed
}

func (r *Reporter) send(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = r.conn.Write(append(line, '\n'))
	return err
}

// Close sends the last report and ends the connection that Start has made. Further calls, and that
// of a nil Reporter, do nothing.
func (r *Reporter) Close() {
	if r == nil || r.conn == nil {
		return
	}
	r.close.Do(func() {
		close(r.stop)
		r.report("")
		r.ended.Store(true)
		r.conn.Close()
		r.done.Wait()
	})
}

var _ opmanager.Listener = (*Reporter)(nil)
