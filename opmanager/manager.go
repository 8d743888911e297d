package opmanager

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/primus-fl/primus/opregistry"
)

// Settings are what code passes to New; the zero value works.
type Settings struct {
	// Exec is what impls run with; nil means one without workers.
	Exec *opregistry.Exec
	// Timing measures the duration of every call, at two clock readings each.
	Timing bool
	// Quarantine says when a failing impl is set aside.
	Quarantine QuarantineSettings
	// Listeners receive events.
	Listeners []Listener
}

// Manager selects impls by one policy and calls them.
type Manager struct {
	core   *core
	table  atomic.Pointer[table]
	policy *Policy // guarded by core.mu
}

// core is what a Manager shares with the views made by With.
type core struct {
	registry   *opregistry.Registry
	exec       *opregistry.Exec
	timing     bool
	listeners  []Listener
	probes     probes
	quarantine quarantine

	countersMu sync.Mutex
	counters   map[statsKey]*counters
	slots      map[string]int // of an op, how many are taken

	lastMu sync.Mutex
	last   map[string]ImplInfo // the impl that served an op last, for Selected and Switched

	mu         sync.Mutex // serialises changes; may be held while probes run
	views      map[*Manager]struct{}
	generation uint64
	unwatch    func()
}

// New returns a Manager over a registry. It follows every later change of the
// registry until Close.
func New(registry *opregistry.Registry, policy Policy, set Settings) *Manager {
	c := &core{
		registry: registry, exec: set.Exec, timing: set.Timing, listeners: set.Listeners,
		counters: map[statsKey]*counters{}, slots: map[string]int{}, last: map[string]ImplInfo{}, views: map[*Manager]struct{}{},
	}
	if c.exec == nil {
		c.exec = opregistry.NewExec(nil, 0)
	}
	c.quarantine.init(set.Quarantine)
	m := c.view(policy)
	c.unwatch = registry.Watch(func(*opregistry.Snapshot) { c.rebuild() })
	c.rebuild()
	c.emit(registered(registry.Snapshot()))
	return m
}

// With returns a Manager with another policy that shares everything else:
// registry, counters, quarantine and listeners. Close ends it alone.
func (m *Manager) With(policy Policy) *Manager { return m.core.view(policy) }

func (c *core) view(policy Policy) *Manager {
	m := &Manager{core: c, policy: &policy}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.views[m] = struct{}{}
	c.generation++
	m.table.Store(c.buildTable(c.generation, c.registry.Snapshot(), m.policy))
	return m
}

// rebuild gives every view a new table.
func (c *core) rebuild() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	snap := c.registry.Snapshot()
	for m := range c.views {
		m.table.Store(c.buildTable(c.generation, snap, m.policy))
	}
}

// Policy returns the policy in force.
func (m *Manager) Policy() Policy { return *m.table.Load().policy }

// Generation returns the number of the dispatch table in force. It grows with
// every change.
func (m *Manager) Generation() uint64 { return m.table.Load().generation }

// SetPolicy puts another policy in force for the calls that follow.
func (m *Manager) SetPolicy(policy Policy) {
	m.core.mu.Lock()
	m.policy = &policy
	m.core.generation++
	generation := m.core.generation
	m.table.Store(m.core.buildTable(generation, m.core.registry.Snapshot(), m.policy))
	m.core.mu.Unlock()
	m.core.emit(PolicyChanged{Generation: generation})
}

// Reprobe asks every impl again whether it is available.
func (m *Manager) Reprobe() {
	m.core.probes.forget()
	m.core.rebuild()
}

// Exec returns what impls run with.
func (m *Manager) Exec() *opregistry.Exec { return m.core.exec }

// Close stops following the registry; of a view it ends the view alone. Calls
// through bound handles still work. Close is idempotent.
func (m *Manager) Close() {
	c := m.core
	c.mu.Lock()
	delete(c.views, m)
	last := len(c.views) == 0
	c.mu.Unlock()
	if last {
		c.unwatch()
		c.quarantine.close()
	}
}

func (c *core) emit(e Event) {
	for _, l := range c.listeners {
		l.OnEvent(e)
	}
}

func registered(snap *opregistry.Snapshot) Registered {
	ids := map[string]struct{}{}
	impls := 0
	for i := range snap.Ops() {
		for _, e := range snap.Impls(i) {
			ids[e.ID] = struct{}{}
			impls++
		}
	}
	return Registered{Ops: len(snap.Ops()), Impls: impls, IDs: slices.Sorted(maps.Keys(ids))}
}
