package opmanager

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/primus-fl/primus/internal/argcopy"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
)

// Settings are the optional settings of New. The zero value is usable.
type Settings struct {
	// Exec provides impls with workers and scratch memory; nil means an Exec without workers.
	Exec *opregistry.Exec
	// Listeners receive the events of the Manager.
	Listeners []Listener
	// Layers are the layers of the policy above LayerDefault, which is the policy that New is given.
	Layers PolicyLayers
}

// Manager selects impls according to a policy and calls them.
type Manager struct {
	core   *core
	table  atomic.Pointer[table]
	root   *Manager // the Manager that Layer or Phase derived this one from, or itself
	scope  scope
	byName atomic.Pointer[[]any] // bound handles by op, for Call
	bound  *bindings

	// Set in a root only, guarded by core.mu.
	stack     *PolicyStack
	policy    *oppolicy.Policy    // that the stack makes
	scopes    map[scope]*Manager  // the Managers derived from this one
	histories map[string]*history // by the rules that apply

	expected atomic.Pointer[expectation] // of a root; nil if the program has said nothing
}

// core is the state that a Manager shares with those derived from it by With, Layer and Phase.
type core struct {
	registry   *opregistry.Registry
	exec       *opregistry.Exec
	began      time.Time
	listeners  []Listener
	probes     probes
	quarantine quarantine
	crossing   argcopy.Buffers // for calls across devices
	verifying  atomic.Int64    // the time that verification took, in nanoseconds
	keepWrong  atomic.Pointer[func(VerificationFailed) string]

	draws draws

	canariesMu sync.Mutex
	canaries   map[string]*canary

	countersMu sync.Mutex
	counters   map[statsKey]*counters
	slots      map[string]int                          // the number of slots in use, by op
	handles    map[string]map[*handleCounters]struct{} // by op

	mu         sync.Mutex // serialises changes; never held while an impl or a listener runs
	roots      map[*Manager]struct{}
	generation uint64
	taps       []Tap // replaced, never changed
	unwatch    func()
}

// New returns a Manager for the impls of a registry. It follows changes of the registry until
// Close.
func New(registry *opregistry.Registry, policy oppolicy.Policy, set Settings) *Manager {
	c := &core{
		registry: registry, exec: set.Exec, began: time.Now(), listeners: set.Listeners,
		counters: map[statsKey]*counters{}, slots: map[string]int{}, handles: map[string]map[*handleCounters]struct{}{}, roots: map[*Manager]struct{}{},
	}
	if c.exec == nil {
		c.exec = opregistry.NewExec(nil, 0)
	}
	m := c.view(set.Layers.with(LayerDefault, PolicyLayer{Policy: policy}))
	c.unwatch = registry.Watch(func(*opregistry.Snapshot) { c.rebuild() })
	c.update(func() { m.stack.since = c.generation + 1 })
	c.emit(registered(registry.Snapshot()))
	return m
}

// With returns a Manager with another policy, and a stack of its own for that, that shares the
// registry, counters, quarantines and listeners of m. Closing it does not close m.
func (m *Manager) With(policy oppolicy.Policy) *Manager {
	return m.core.view(PolicyLayers{LayerDefault: {Policy: policy}})
}

func (c *core) view(layers PolicyLayers) *Manager {
	policy := layers.Policy()
	m := &Manager{core: c, policy: &policy, scopes: map[scope]*Manager{}, histories: map[string]*history{}, bound: newBindings()}
	m.root, m.stack = m, &PolicyStack{manager: m, layers: layers}
	c.update(func() {
		c.roots[m] = struct{}{}
		m.stack.since = c.generation + 1
	})
	return m
}

func (c *core) rebuild() { c.update(func() {}) }

// update makes a change and then builds a new table for every Manager, all of one generation.
// Calls continue in the meantime.
func (c *core) update(change func()) {
	c.apply(func(inputs) (*Manager, error) {
		change()
		return nil, nil
	})
}

// apply makes a change and then builds a new table for every Manager. It returns the generation of
// the new tables, or the error of the change, in which case nothing is built. If the change stores
// the tables of a root itself, it returns that root.
func (c *core) apply(change func(inputs) (*Manager, error)) (uint64, error) {
	for {
		snap := c.registry.Snapshot()
		unavailable := c.probes.answers(snap) // without the lock, since it may take long
		c.mu.Lock()
		if snap != c.registry.Snapshot() {
			c.mu.Unlock()
			continue
		}
		in := inputs{generation: c.generation + 1, registry: snap, unavailable: unavailable, taps: c.taps}
		done, err := change(in)
		if err != nil {
			c.mu.Unlock()
			return 0, err
		}
		c.generation, in.taps = in.generation, c.taps
		for m := range c.roots {
			if m != done {
				storeTables(c.buildTables(m.views(), m.policy, in, m.history))
			}
		}
		c.mu.Unlock()
		return in.generation, nil
	}
}

// views returns a root and the Managers that Layer and Phase derived from it. The caller holds
// core.mu.
func (m *Manager) views() []*Manager {
	return slices.AppendSeq([]*Manager{m}, maps.Values(m.scopes))
}

// tables returns the current tables: the one of the policy, then those of the layers and phases to
// which rules apply.
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

// buildTables returns the tables of a root and the Managers derived from it under a policy. Those
// to which the same rules apply share a table.
func (c *core) buildTables(views []*Manager, p *oppolicy.Policy, in inputs, historyOf func(rules string) *history) map[*Manager]*table {
	built, tables := map[string]*table{}, make(map[*Manager]*table, len(views))
	for _, v := range views {
		policy, rules := v.scope.policy(p)
		if built[rules] == nil {
			built[rules] = c.buildTable(in, policy, historyOf(rules))
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

// history returns the history of a root for the calls to which rules apply. The caller holds
// core.mu.
func (m *Manager) history(rules string) *history {
	h, ok := m.histories[rules]
	if !ok {
		h = &history{rules: rules, last: map[string]ImplInfo{}}
		m.histories[rules] = h
	}
	return h
}

// Policy returns the current policy. That of a layer or phase includes the rules that apply to it.
func (m *Manager) Policy() oppolicy.Policy { return *m.table.Load().policy }

// Generation returns the number of the current dispatch table. It grows with every change.
func (m *Manager) Generation() uint64 { return m.table.Load().generation }

// Reprobe runs the availability probe of every impl again. A program calls it when what probes look
// for has changed, such as a device that was connected; else each probe runs once.
func (m *Manager) Reprobe() {
	m.core.probes.forget()
	m.core.rebuild()
}

// Exec returns the Exec that impls run with.
func (m *Manager) Exec() *opregistry.Exec { return m.core.exec }

// Close stops following the registry when the last Manager made by New or With is closed. It has no
// effect on a Manager made by Layer or Phase. Bound handles stay usable. Close is idempotent.
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
