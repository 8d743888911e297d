package backend

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/primus-fl/primus/opmanager"
)

// RankUse is an impl of an op as the processes of a framework use it.
type RankUse struct {
	Op        string `json:"op"`
	Impl      string `json:"impl_id"`
	Kind      string `json:"kind,omitempty"` // empty where it is unknown
	Vendor    string `json:"vendor,omitempty"`
	Ranks     int    `json:"ranks"`     // that it serves
	Calls     uint64 `json:"calls"`     // that it served, as far as the processes count them
	Declines  uint64 `json:"declines"`  // calls that it declined, likewise
	Nanos     int64  `json:"nanos"`     // time in the calls that it served
	Fallbacks uint64 `json:"fallbacks"` // times that it took the place of an impl that failed
	Errors    uint64 `json:"errors"`    // calls in which it failed
}

// RankCalls are calls of an op that an impl served or declined in a process of a framework.
type RankCalls struct {
	Op string `json:"op"`
	opmanager.ImplInfo
	Calls    uint64        `json:"calls"`
	Declines uint64        `json:"declines,omitempty"`
	Duration time.Duration `json:"nanos"` // of the calls that it served
}

// RankDispatch keeps which impls the processes of a framework use. The zero value is usable, and
// its methods may be called by several goroutines.
type RankDispatch struct {
	mu      sync.Mutex
	uses    map[rankImpl]*RankUse
	serving map[rankOp]string
}

type (
	rankImpl struct{ op, impl string }
	rankOp   struct {
		rank int
		op   string
	}
)

// OpEvent records an event of the op manager of a rank. It implements DispatchObserver.
func (d *RankDispatch) OpEvent(rank int, e opmanager.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch e := e.(type) {
	case opmanager.Selected:
		d.serve(rank, e.Op, e.Impl)
	case opmanager.Switched:
		d.serve(rank, e.Op, e.To)
	case opmanager.FellBack:
		d.serve(rank, e.Op, e.To)
		d.use(e.Op, e.To).Fallbacks++
	case opmanager.Failed:
		d.use(e.Op, e.Impl).Errors++
	}
}

// RankCalls adds calls in a rank. It implements RankCallObserver.
func (d *RankDispatch) RankCalls(_ int, calls []RankCalls) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range calls {
		u := d.use(c.Op, c.ImplInfo)
		u.Calls += c.Calls
		u.Declines += c.Declines
		u.Nanos += int64(c.Duration)
	}
}

// serve records that an impl serves an op in a rank from now on.
func (d *RankDispatch) serve(rank int, op string, impl opmanager.ImplInfo) {
	if d.serving == nil {
		d.serving = map[rankOp]string{}
	}
	at := rankOp{rank, op}
	if before, ok := d.serving[at]; ok {
		d.uses[rankImpl{op, before}].Ranks--
	}
	d.serving[at] = impl.ID
	d.use(op, impl).Ranks++
}

func (d *RankDispatch) use(op string, impl opmanager.ImplInfo) *RankUse {
	key := rankImpl{op, impl.ID}
	u := d.uses[key]
	if u == nil {
		if d.uses == nil {
			d.uses = map[rankImpl]*RankUse{}
		}
		u = &RankUse{Op: op, Impl: impl.ID}
		d.uses[key] = u
	}
	if impl.Kind != 0 {
		u.Kind, u.Vendor = impl.Kind.String(), impl.Vendor
	}
	return u
}

// Uses returns the impls that have served an op or failed, sorted by op and impl.
func (d *RankDispatch) Uses() []RankUse {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]RankUse, 0, len(d.uses))
	for _, u := range d.uses {
		all = append(all, *u)
	}
	slices.SortFunc(all, func(a, b RankUse) int { return cmp.Or(cmp.Compare(a.Op, b.Op), cmp.Compare(a.Impl, b.Impl)) })
	return all
}
