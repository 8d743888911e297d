package fleet

import (
	"context"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// reachEvery is how often Watch checks that etcd answers.
const reachEvery = 2 * time.Second

// EventKind is the kind of an Event.
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
	EventFound    EventKind = "found"    // it answers again; events for the changes in between follow
)

// Event is a change of a fleet.
type Event struct {
	Time time.Time `json:"time"`
	Kind EventKind `json:"event"`
	// Member is the record of the run that the event is about, or the last record of a run that
	// left; nil for events that are not about a run.
	Member *Member `json:"run,omitempty"`
	// Revision is that of the policy for EventPolicy, 0 if there is none.
	Revision int64 `json:"revision,omitempty"`
	// Reason is the reason of EventLost and EventRejected.
	Reason string `json:"reason,omitempty"`
}

// Watch calls notify for the present members and policy, and then for every change, until ctx ends
// or notify returns an error, which Watch returns. It returns an error if it cannot reach etcd at
// first; later outages are events.
func (c *Client) Watch(ctx context.Context, notify func(Event) error) error {
	w := &watcher{client: c, notify: notify, members: map[string]Member{}}
	next, err := c.Snapshot(ctx)
	for err == nil {
		err = w.follow(ctx, next)
		if ctx.Err() != nil || w.err != nil {
			return w.err
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

// watcher turns changes in etcd into events.
type watcher struct {
	client  *Client
	notify  func(Event) error
	err     error // that notify returned
	members map[string]Member
	policy  int64
}

func (w *watcher) event(e Event) error {
	e.Time = time.Now()
	w.err = w.notify(e)
	return w.err
}

// again waits until etcd answers.
func (w *watcher) again(ctx context.Context) (Snapshot, error) {
	for next := pause(firstPause); next.wait(ctx); {
		if s, err := w.client.Snapshot(ctx); err == nil {
			return s, w.event(Event{Kind: EventFound})
		}
	}
	return Snapshot{}, ctx.Err()
}

// follow sends events for the differences of a snapshot from the state sent before, and then for
// every change after it. It returns why it has ended.
func (w *watcher) follow(ctx context.Context, s Snapshot) error {
	if err := w.difference(s); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// One watch over all keys from the policy to the last run, because only the changes of one
	// watch come in order.
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
		case <-look.C: // a watch does not notice that etcd is gone
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
		return nil // Snapshot lists it in Strange
	}
	return w.put(m)
}

// difference sends events for what has changed between the state sent before and a snapshot.
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
