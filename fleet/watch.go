package fleet

import (
	"context"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// reachEvery is how often Watch asks whether etcd is there.
const reachEvery = 2 * time.Second

// EventKind is what an Event tells.
type EventKind string

// The kinds of events.
const (
	EventJoined   EventKind = "joined"   // a run is registered
	EventLeft     EventKind = "left"     // its record is gone: it has ended, or has been silent for too long
	EventPolicy   EventKind = "policy"   // the fleet has another policy, or none any more
	EventApplied  EventKind = "applied"  // a run has the policy of the fleet in force
	EventRejected EventKind = "rejected" // a run cannot use it
	EventDispatch EventKind = "dispatch" // a run has another dispatch table for another reason, such as a quarantine
	EventLost     EventKind = "lost"     // etcd does not answer; events may be missing until EventFound
	EventFound    EventKind = "found"    // it answers again; what changed meanwhile follows
)

// Event is a change of a fleet.
type Event struct {
	Time time.Time `json:"time"`
	Kind EventKind `json:"event"`
	// Member is the record of the run that it concerns, the last one of a run that left; nil for the
	// others.
	Member *Member `json:"run,omitempty"`
	// Revision is that of the policy for EventPolicy, 0 for none.
	Revision int64 `json:"revision,omitempty"`
	// Reason tells more of EventLost and EventRejected.
	Reason string `json:"reason,omitempty"`
}

// Watch calls tell with the members and the policy that are there, and then with every change,
// until ctx ends or tell returns an error, which is returned. A failure to reach etcd at first is
// an error; later it is an event.
func (c *Client) Watch(ctx context.Context, tell func(Event) error) error {
	w := &watcher{client: c, tell: tell, members: map[string]Member{}}
	next, err := c.Snapshot(ctx)
	for err == nil {
		err = w.follow(ctx, next)
		if ctx.Err() != nil || w.told != nil {
			return w.told
		}
		if err = w.event(Event{Kind: EventLost, Reason: err.Error()}); err == nil {
			next, err = w.again(ctx)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// watcher turns what etcd tells into events.
type watcher struct {
	client  *Client
	tell    func(Event) error
	told    error // of tell
	members map[string]Member
	policy  int64
}

func (w *watcher) event(e Event) error {
	e.Time = time.Now()
	w.told = w.tell(e)
	return w.told
}

// again waits until etcd answers.
func (w *watcher) again(ctx context.Context) (Snapshot, error) {
	pause := firstPause
	for {
		select {
		case <-ctx.Done():
			return Snapshot{}, ctx.Err()
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPause)
		if s, err := w.client.Snapshot(ctx); err == nil {
			return s, w.event(Event{Kind: EventFound})
		}
	}
}

// follow tells how a snapshot differs from what was told before, and then every change after it. It
// returns why that ended.
func (w *watcher) follow(ctx context.Context, s Snapshot) error {
	if err := w.difference(s); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// One watch, because changes come in order within a watch only: over all keys from the policy to
	// the last run.
	keys := w.client.keys
	changes, err := w.client.watch(ctx, keys.policy, s.revision+1, clientv3.WithRange(clientv3.GetPrefixRangeEnd(keys.runs)))
	if err != nil {
		return err
	}
	look := time.NewTicker(reachEvery)
	defer look.Stop()
	for {
		var r clientv3.WatchResponse
		var ok bool
		select {
		case r, ok = <-changes:
		case <-look.C: // a watch does not notice by itself that nobody is there
			if err := w.client.reach(ctx); err != nil {
				return err
			}
			continue
		}
		if err := broken(ctx, r, ok); err != nil {
			return w.client.config.fault("watch", err)
		}
		for _, e := range r.Events {
			if err := w.change(e); err != nil {
				return err
			}
		}
	}
}

func (w *watcher) change(e *clientv3.Event) error {
	key, gone := string(e.Kv.Key), e.Type == clientv3.EventTypeDelete
	id, run := strings.CutPrefix(key, w.client.keys.runs)
	switch {
	case key == w.client.keys.policy && gone:
		return w.setPolicy(0)
	case key == w.client.keys.policy:
		return w.setPolicy(e.Kv.ModRevision)
	case !run:
		return nil
	case gone:
		return w.left(id)
	}
	m, err := parseMember(key, e.Kv.Value)
	if err != nil {
		return nil // Snapshot lists those as strange
	}
	return w.put(m)
}

// difference tells what a snapshot has that was not told.
func (w *watcher) difference(s Snapshot) error {
	if err := w.setPolicy(s.Policy.Revision); err != nil {
		return err
	}
	there := map[string]bool{}
	for _, m := range s.Members {
		there[m.ID] = true
		if err := w.put(m); err != nil {
			return err
		}
	}
	for id := range w.members {
		if !there[id] {
			if err := w.left(id); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *watcher) setPolicy(revision int64) error {
	if revision == w.policy {
		return nil
	}
	w.policy = revision
	return w.event(Event{Kind: EventPolicy, Revision: revision})
}

func (w *watcher) left(id string) error {
	m, ok := w.members[id]
	if !ok {
		return nil
	}
	delete(w.members, id)
	return w.event(Event{Kind: EventLeft, Member: &m})
}

func (w *watcher) put(m Member) error {
	before, known := w.members[m.ID]
	w.members[m.ID] = m
	e := Event{Member: &m}
	switch {
	case !known:
		e.Kind = EventJoined
	case m.Policy != before.Policy && m.Policy.Rejected != "":
		e.Kind, e.Reason = EventRejected, m.Policy.Rejected
	case m.Policy != before.Policy:
		e.Kind = EventApplied
	case m.Generation != before.Generation:
		e.Kind = EventDispatch
	default:
		return nil
	}
	return w.event(e)
}
