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
	bound  *bindings
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
	m := &Manager{core: c, policy: &policy, scopes: map[scope]*Manager{}, lines: map[string]*line{}, bound: newBindings()}
	m.root = m
	c.update(func() { c.roots[m] = struct{}{} })
	return m
}

func (c *core) rebuild() { c.update(func() {}) }

// update makes a change and gives every view a new table, all of one generation.
// Calls go on meanwhile.
func (c *core) update(change func()) {
	c.apply(func(inputs) (*Manager, error) {
		change()
		return nil, nil
	})
}

// apply makes a change, unless that returns an error, and gives every view a new
// table. All are of one generation, which it returns. The change may have put in
// place those of a root, which it returns.
func (c *core) apply(change func(inputs) (*Manager, error)) (uint64, error) {
	for {
		snap := c.registry.Snapshot()
		available := c.probes.answers(snap) // may take long, hence without the lock
		c.mu.Lock()
		if snap != c.registry.Snapshot() {
			c.mu.Unlock()
			continue
		}
		in := inputs{generation: c.generation + 1, registry: snap, available: available}
		done, err := change(in)
		if err != nil {
			c.mu.Unlock()
			return 0, err
		}
		c.generation = in.generation
		for m := range c.roots {
			if m != done {
				storeTables(c.buildTables(m.views(), m.policy, in, m.line))
			}
		}
		c.mu.Unlock()
		return in.generation, nil
	}
}

// views returns a root and the views made from it. The caller holds core.mu.
func (m *Manager) views() []*Manager {
	return slices.AppendSeq([]*Manager{m}, maps.Values(m.scopes))
}

// tables returns the tables in force: that of the policy, then those of the views
// to which rules apply.
func (m *Manager) tables() []*table {
	m.core.mu.Lock()
	defer m.core.mu.Unlock()
	return m.tablesLocked()
}

func (m *Manager) tablesLocked() []*table {
	tables := []*table{m.root.table.Load()}
	for _, v := range m.root.scopes {
		if t := v.table.Load(); !slices.Contains(tables, t) {
			tables = append(tables, t)
		}
	}
	return tables
}

// buildTables returns what would be the tables of a root and its views under a
// policy. Views to which the same rules apply share one.
func (c *core) buildTables(views []*Manager, p *Policy, in inputs, lineOf func(rules string) *line) map[*Manager]*table {
	built, tables := map[string]*table{}, make(map[*Manager]*table, len(views))
	for _, v := range views {
		policy, rules := p.at(v.scope)
		if built[rules] == nil {
			built[rules] = c.buildTable(in, policy, lineOf(rules))
		}
		tables[v] = built[rules]
	}
	return tables
}

func storeTables(tables map[*Manager]*table) {
	for m, t := range tables {
		m.table.Store(t)
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
// that begins with it. A policy that takes the last impl from an op that handles
// are bound to is refused with an *UnservedError, and nothing has changed.
func (m *Manager) SetPolicy(policy Policy) (uint64, error) {
	generation, err := m.core.apply(func(in inputs) (*Manager, error) {
		tables := m.core.buildTables(m.root.views(), &policy, in, m.root.line)
		if err := unserved(tables); err != nil {
			return nil, err
		}
		m.root.policy = &policy
		storeTables(tables)
		return m.root, nil
	})
	if err != nil {
		return 0, err
	}
	m.core.emit(PolicyChanged{Generation: generation})
	return generation, nil
}

// CheckPolicy returns the error with which SetPolicy would refuse a policy, and
// changes nothing.
func (m *Manager) CheckPolicy(policy Policy) error {
	c := m.core
	c.mu.Lock()
	views, in := m.root.views(), m.root.table.Load().inputs
	c.mu.Unlock()
	newLine := func(rules string) *line { return &line{rules: rules} }
	return unserved(c.aside().buildTables(views, &policy, in, newLine))
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
