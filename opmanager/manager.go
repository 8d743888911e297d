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
	// Uncounted leaves out the count of calls, which is the larger part of what
	// dispatch costs. Fallbacks, declines and failures are counted all the same.
	Uncounted bool
	// Listeners receive events.
	Listeners []Listener
}

// Manager selects impls by one policy and calls them.
type Manager struct {
	core   *core
	table  atomic.Pointer[table]
	root   *Manager // whose policy this view follows; itself unless made by Layer or Phase
	scope  scope
	policy *Policy               // of a root; guarded by core.mu
	scopes map[scope]*Manager    // the views of a root; guarded by core.mu
	lines  map[string]*line      // of a root, by the rules that apply; guarded by core.mu
	named  atomic.Pointer[[]any] // bound handles by op, for Call
}

// core is what a Manager shares with the views made by With, Layer and Phase.
type core struct {
	registry   *opregistry.Registry
	exec       *opregistry.Exec
	timing     bool
	uncounted  bool
	listeners  []Listener
	probes     probes
	quarantine quarantine

	countersMu sync.Mutex
	counters   map[statsKey]*counters
	slots      map[string]int                          // of an op, how many are taken
	handles    map[string]map[*handleCounters]struct{} // by op

	mu         sync.Mutex // serialises changes; never held while an impl or a listener runs
	roots      map[*Manager]struct{}
	generation uint64
	unwatch    func()
}

// New returns a Manager over a registry. It follows every later change of the
// registry until Close.
func New(registry *opregistry.Registry, policy Policy, set Settings) *Manager {
	c := &core{
		registry: registry, exec: set.Exec, timing: set.Timing, uncounted: set.Uncounted, listeners: set.Listeners,
		counters: map[statsKey]*counters{}, slots: map[string]int{}, handles: map[string]map[*handleCounters]struct{}{}, roots: map[*Manager]struct{}{},
	}
	if c.exec == nil {
		c.exec = opregistry.NewExec(nil, 0)
	}
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
	m := &Manager{core: c, policy: &policy, scopes: map[scope]*Manager{}, lines: map[string]*line{}}
	m.root = m
	c.update(func() { c.roots[m] = struct{}{} })
	return m
}

func (c *core) rebuild() { c.update(func() {}) }

// update makes a change and gives every view a new table, all of one generation,
// which it returns. Calls go on meanwhile.
func (c *core) update(change func()) uint64 {
	for {
		snap := c.registry.Snapshot()
		available := c.probes.answers(snap) // may take long, hence without the lock
		c.mu.Lock()
		if snap != c.registry.Snapshot() {
			c.mu.Unlock()
			continue
		}
		change()
		c.generation++
		in := inputs{generation: c.generation, registry: snap, available: available}
		for m := range c.roots {
			c.rebuildRoot(m, in)
		}
		c.mu.Unlock()
		return in.generation
	}
}

// rebuildRoot gives a root and its views new tables. Views to which the same rules
// apply share one.
func (c *core) rebuildRoot(m *Manager, in inputs) {
	built := map[string]*table{}
	tableAt := func(at scope) *table {
		policy, rules := m.policy.at(at)
		t, ok := built[rules]
		if !ok {
			t = c.buildTable(in, policy, m.line(rules))
			built[rules] = t
		}
		return t
	}
	m.table.Store(tableAt(m.scope))
	for at, v := range m.scopes {
		v.table.Store(tableAt(at))
	}
}

func (m *Manager) line(rules string) *line {
	l, ok := m.lines[rules]
	if !ok {
		l = &line{rules: rules, last: map[string]ImplInfo{}}
		m.lines[rules] = l
	}
	return l
}

// Policy returns the policy in force, for a view of a layer or phase with the
// rules that apply to it.
func (m *Manager) Policy() Policy { return *m.table.Load().policy }

// Generation returns the number of the dispatch table in force. It grows with
// every change.
func (m *Manager) Generation() uint64 { return m.table.Load().generation }

// SetPolicy puts another policy in force for the calls that follow, for a view of
// a layer or phase that of the Manager it came from. It returns the generation
// that begins with it.
func (m *Manager) SetPolicy(policy Policy) uint64 {
	generation := m.core.update(func() { m.root.policy = &policy })
	m.core.emit(PolicyChanged{Generation: generation})
	return generation
}

// Reprobe asks every impl again whether it is available.
func (m *Manager) Reprobe() {
	m.core.probes.forget()
	m.core.rebuild()
}

// Exec returns what impls run with.
func (m *Manager) Exec() *opregistry.Exec { return m.core.exec }

// Close stops following the registry; of a view made by With it ends the view
// alone, of one made by Layer or Phase nothing. Calls through bound handles still
// work. Close is idempotent.
func (m *Manager) Close() {
	c := m.core
	c.mu.Lock()
	_, open := c.roots[m]
	delete(c.roots, m)
	last := open && len(c.roots) == 0
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
