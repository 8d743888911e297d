package fleet

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/primus-fl/primus/opmanager"
)

// DefaultLease is how long a run may be silent before it is listed as lost.
const DefaultLease = 10 * time.Second

// Settings are what an Agent needs. The others than Status, Tail,
// Lease and Keep are required.
type Settings struct {
	Config   Config
	Identity Identity
	// Manager is the one whose policy has that of the fleet as its layer of kind
	// opmanager.LayerFleet.
	Manager *opmanager.Manager
	// Log receives every change of the policy and of the connection.
	Log *slog.Logger
	// Status returns how the run gets on; nil does not say. Tail returns the last lines of its log,
	// or all of them after a position if that is not 0, and the position of the end; nil has no log.
	// Both are called from the goroutine of the Agent.
	Status func() Status
	Tail   func(lines int, after int64) (text []byte, end int64)
	// Lease is how long the run may be silent before it is listed as lost; 0 means DefaultLease. etcd
	// keeps the record for seven tenths of it, in whole seconds and with a minimum: it is late to
	// notice the end of a lease, and when it starts each lease begins again.
	Lease time.Duration
	// Keep is how long etcd keeps the Status of a run that has ended; 0 means DefaultKeep.
	Keep time.Duration
}

// Agent connects a run with the fleet.
type Agent struct {
	set  Settings
	keys keys
	id   string

	// Used by the goroutine only.
	policy  followed
	written Member // the record in etcd

	start, end sync.Once
	first      chan struct{} // closed when the first attempt has succeeded or failed
	stop       context.CancelFunc
	done       sync.WaitGroup

	mu    sync.Mutex
	state State   // guarded by mu
	ended *Status // guarded by mu; nil before Ended
}

// State is the state of an Agent.
type State struct {
	ID string `json:"id"`
	// Connected says whether the run is registered and follows the policy. Otherwise Problem says why,
	// and since When.
	Connected bool      `json:"connected"`
	Problem   string    `json:"problem,omitempty"`
	When      time.Time `json:"when"` // of the last change of Connected
	// Losses counts how often the connection was lost.
	Losses uint64       `json:"losses"`
	Policy PolicyReport `json:"policy"`
	// Rejections counts policies that could not be used.
	Rejections uint64 `json:"rejections"`
}

// NewAgent returns an Agent for a run. It does nothing until Start. An error means that the
// configuration is wrong.
func NewAgent(set Settings) (*Agent, error) {
	if err := set.Config.Validate(); err != nil {
		return nil, err
	}
	if _, err := set.Config.tls(); err != nil {
		return nil, err
	}
	if set.Lease == 0 {
		set.Lease = DefaultLease
	}
	if set.Keep == 0 {
		set.Keep = DefaultKeep
	}
	a := &Agent{set: set, keys: set.Config.keys(), id: newID(set.Identity), first: make(chan struct{})}
	a.state = State{ID: a.id, Problem: "not started"}
	return a, nil
}

// Start starts the Agent. It returns when the run is registered and has the policy of the fleet,
// when the first attempt to connect has failed, or when ctx ends. An etcd that does not answer is
// not an error: the Agent keeps trying. Further calls do nothing.
func (a *Agent) Start(ctx context.Context) {
	a.start.Do(func() {
		life, stop := context.WithCancel(context.WithoutCancel(ctx))
		a.stop = stop
		a.done.Go(func() { a.run(life) })
		select {
		case <-a.first:
		case <-ctx.Done():
		}
	})
}

// Close writes how the run has ended and removes it from the fleet, for which it waits at most two
// seconds when etcd does not answer. It is idempotent and safe without Start.
func (a *Agent) Close() {
	a.start.Do(func() {})
	a.end.Do(func() {
		if a.stop != nil {
			a.stop()
		}
	})
	a.done.Wait()
}

// State returns the state of the Agent.
func (a *Agent) State() State {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state
}

// run starts one session after another until ctx ends.
func (a *Agent) run(ctx context.Context) {
	firstOver := sync.OnceFunc(func() { close(a.first) })
	next := pause(firstPause)
	for {
		err := a.session(ctx, func() {
			next = pause(firstPause)
			a.connected()
			firstOver()
		})
		if ctx.Err() != nil {
			a.closed()
			return
		}
		a.lost(err)
		firstOver()
		next.wait(ctx)
	}
}

func (a *Agent) connected() {
	a.mu.Lock()
	a.state.Connected, a.state.Problem, a.state.When = true, "", time.Now()
	a.mu.Unlock()
	a.set.Log.Info("run is registered with the fleet", "id", a.id, "policy", a.policy.report.InForce)
}

// lost records why a session has ended or could not begin, and logs it once for each outage.
func (a *Agent) lost(err error) {
	a.mu.Lock()
	already := !a.state.Connected && !a.state.When.IsZero()
	if a.state.Connected {
		a.state.Losses++
	}
	if !already {
		a.state.When = time.Now()
	}
	a.state.Connected, a.state.Problem = false, err.Error()
	a.mu.Unlock()
	if !already {
		a.set.Log.Warn("the fleet cannot be reached; training continues with the current policy, and the run tries to connect again", "reason", err)
	}
}

func (a *Agent) closed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state.Connected, a.state.Problem, a.state.When = false, "closed", time.Now()
}

// errWatchEnded is the error of a watch that etcd has ended without a reason.
var errWatchEnded = errors.New("the watch has ended")
