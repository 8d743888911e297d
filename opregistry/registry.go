package opregistry

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/primus-fl/primus/device"
)

// Registry collects sources and publishes Snapshots of their impls.
type Registry struct {
	current atomic.Pointer[Snapshot]

	mu       sync.Mutex // serialises writers
	watchers map[int]func(*Snapshot)
	nextID   int
}

// Snapshot is the immutable content of a Registry at one moment.
type Snapshot struct {
	generation uint64
	ops        []Handle // dense, append-only over the life of a Registry
	index      map[string]int
	impls      [][]Entry // by op index, in registration order
	aliases    map[string]string
	sources    []Source
	registered uint64 // number of impls ever registered
}

// Entry is a registered impl with the data that registration adds.
type Entry struct {
	Impl
	// Source is the name of the source that brought the impl.
	Source string
	// Number identifies this registration: an impl that replaces another with the same name has
	// another number.
	Number uint64
}

// builtinAliases are the names that public documentation uses for vendors.
var builtinAliases = map[string]string{"cuda": "nvidia", "rocm": "amd", "hip": "amd", "npu": "ascend"}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry {
	r := &Registry{watchers: map[int]func(*Snapshot){}}
	r.current.Store(&Snapshot{index: map[string]int{}, aliases: maps.Clone(builtinAliases)})
	return r
}

// Snapshot returns the current content.
func (r *Registry) Snapshot() *Snapshot { return r.current.Load() }

// Watch calls f with the new content after every change, one change at a time and in order, until
// cancel is called. f must not change the registry.
func (r *Registry) Watch(f func(*Snapshot)) (cancel func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := r.nextID
	r.nextID++
	r.watchers[id] = f
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.watchers, id)
	}
}

// Register adds a source: either all of it, or nothing and an error that names the first faulty
// impl.
func (r *Registry) Register(src Source) error {
	return r.change(func(next *Snapshot) error { return next.add(src) })
}

// Replace removes the source with the same name, if there is one, and adds src, in a single change.
func (r *Registry) Replace(src Source) error {
	return r.change(func(next *Snapshot) error {
		next.drop(src.Name)
		return next.add(src)
	})
}

// Unregister removes a source and its impls. Its ops stay declared.
func (r *Registry) Unregister(source string) error {
	return r.change(func(next *Snapshot) error {
		if !next.drop(source) {
			return fmt.Errorf("opregistry: source %q: %w", source, ErrNotFound)
		}
		return nil
	})
}

func (r *Registry) change(edit func(*Snapshot) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.current.Load().clone()
	if err := edit(next); err != nil {
		return err
	}
	next.generation++
	r.current.Store(next)
	for _, id := range slices.Sorted(maps.Keys(r.watchers)) {
		r.watchers[id](next)
	}
	return nil
}

func (s *Snapshot) clone() *Snapshot {
	next := &Snapshot{
		generation: s.generation,
		registered: s.registered,
		ops:        slices.Clone(s.ops),
		index:      maps.Clone(s.index),
		impls:      make([][]Entry, len(s.impls)),
		aliases:    maps.Clone(s.aliases),
		sources:    slices.Clone(s.sources),
	}
	for i, entries := range s.impls {
		next.impls[i] = slices.Clone(entries)
	}
	return next
}

func (s *Snapshot) add(src Source) error {
	if src.Name == "" {
		return fmt.Errorf("opregistry: given a source without a name, want one that listings can show")
	}
	if slices.ContainsFunc(s.sources, func(o Source) bool { return o.Name == src.Name }) {
		return fmt.Errorf("opregistry: source %q is registered already", src.Name)
	}
	for i, op := range src.Ops {
		if op == nil {
			return fmt.Errorf("opregistry: source %q: given nil as op %d, want the handle of an op", src.Name, i)
		}
		if _, err := s.declare(op); err != nil {
			return err
		}
	}
	for _, impl := range src.Impls {
		if err := impl.check(); err != nil {
			return fmt.Errorf("register source %q: %w", src.Name, err)
		}
		i, err := s.declare(impl.Op)
		if err != nil {
			return fmt.Errorf("register source %q: %w", src.Name, err)
		}
		for _, e := range s.impls[i] {
			if e.ID == impl.ID {
				return &DuplicateError{Op: impl.Op.Name(), ID: impl.ID, Existing: e.Source, New: src.Name}
			}
		}
		impl.Vendor = NormalVendor(impl.Vendor)
		s.registered++
		s.impls[i] = append(s.impls[i], Entry{Impl: impl, Source: src.Name, Number: s.registered})
	}
	for from, to := range src.Aliases {
		s.aliases[NormalVendor(from)] = NormalVendor(to)
	}
	s.sources = append(s.sources, src)
	return nil
}

func (s *Snapshot) drop(source string) bool {
	i := slices.IndexFunc(s.sources, func(o Source) bool { return o.Name == source })
	if i < 0 {
		return false
	}
	s.sources = slices.Delete(s.sources, i, i+1)
	for k := range s.impls {
		s.impls[k] = slices.DeleteFunc(s.impls[k], func(e Entry) bool { return e.Source == source })
	}
	s.aliases = maps.Clone(builtinAliases)
	for _, o := range s.sources {
		for from, to := range o.Aliases {
			s.aliases[NormalVendor(from)] = NormalVendor(to)
		}
	}
	return true
}

func (s *Snapshot) declare(op Handle) (int, error) {
	if i, ok := s.index[op.Name()]; ok {
		if s.ops[i] != op {
			return 0, fmt.Errorf("opregistry: op %q has two handles: use the one that declared it first", op.Name())
		}
		return i, nil
	}
	i := len(s.ops)
	s.index[op.Name()] = i
	s.ops = append(s.ops, op)
	s.impls = append(s.impls, nil)
	return i, nil
}

// Generation returns the number of changes of the registry up to this content.
func (s *Snapshot) Generation() uint64 { return s.generation }

// Ops returns the declared ops. An op keeps its index for the life of the
// registry. The caller must not change the slice.
func (s *Snapshot) Ops() []Handle { return s.ops }

// Index returns the index of the op with this name.
func (s *Snapshot) Index(name string) (int, bool) {
	i, ok := s.index[name]
	return i, ok
}

// Impls returns the impls of the op with this index in registration order. The
// caller must not change the slice.
func (s *Snapshot) Impls(op int) []Entry { return s.impls[op] }

// DeviceTypes returns the types of devices other than the host that impls declare to serve, in
// ascending order.
func (s *Snapshot) DeviceTypes() []device.Type {
	var types []device.Type
	for _, impls := range s.impls {
		for i := range impls {
			for _, t := range impls[i].Support.Devices {
				if t != device.TypeCPU && !slices.Contains(types, t) {
					types = append(types, t)
				}
			}
		}
	}
	slices.Sort(types)
	return types
}

// Sources returns the registered sources in order. The caller must not change the slice.
func (s *Snapshot) Sources() []Source { return s.sources }

// Vendor returns the name that impls use for a vendor that a policy names: in lower case, with
// aliases resolved.
func (s *Snapshot) Vendor(name string) string {
	name = NormalVendor(name)
	if to, ok := s.aliases[name]; ok {
		return to
	}
	return name
}
