package mpi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/primus-fl/primus/ops/collective"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/mpi/internal/pmi"
)

// kept is how many collectives a rank remembers, and told how many of them the others hear of.
const (
	kept = 32
	told = 8
)

// entry is a collective that a rank has entered.
type entry struct {
	what
	Number  uint64        `json:"number"` // of the group, from 1: all its ranks count the same
	Ago     time.Duration `json:"ago"`    // since it was entered, when it is told
	Lasted  time.Duration `json:"lasted"` // 0 while it goes on
	entered time.Time
}

// what has to be the same on all ranks of a collective.
type what struct {
	Op       string `json:"op"`
	Elements int    `json:"elements"`
	DType    string `json:"dtype"`
	Detail   string `json:"detail"` // reduction and root
	First    int    `json:"first"`  // of the group, as in collective.Group
	Stride   int    `json:"stride"`
	Ranks    int    `json:"ranks"`
}

// String describes the collective.
func (e entry) String() string {
	text := fmt.Sprintf("%s %d", e.Op, e.Number)
	if e.DType != "" {
		text += fmt.Sprintf(" of %d %s", e.Elements, e.DType)
	}
	if e.Detail != "" {
		text += " (" + e.Detail + ")"
	}
	return text
}

// members lists the ranks of the group in the job.
func (w what) members() []int {
	all := make([]int, w.Ranks)
	for i := range all {
		all[i] = w.First + i*max(w.Stride, 1)
	}
	return all
}

// recorder remembers the last collectives of this rank.
type recorder struct {
	mu    sync.Mutex
	ring  [kept]entry
	count int // of all
	calls map[[3]int]uint64
}

func newRecorder() *recorder { return &recorder{calls: map[[3]int]uint64{}} }

// enter takes note of a collective that begins.
func (r *recorder) enter(w what) {
	r.mu.Lock()
	defer r.mu.Unlock()
	group := [3]int{w.First, w.Stride, w.Ranks}
	r.calls[group]++
	r.ring[r.count%kept] = entry{what: w, Number: r.calls[group], entered: time.Now()}
	r.count++
}

// leave takes note of its end.
func (r *recorder) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := &r.ring[(r.count-1)%kept]
	e.Lasted = max(time.Since(e.entered), 1)
}

// last returns the last collectives, n at most, the latest one at the end.
func (r *recorder) last(n int) []entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	n = min(n, r.count, kept)
	all := make([]entry, n)
	for i := range all {
		all[i] = r.ring[(r.count-n+i)%kept]
		all[i].Ago = time.Since(all[i].entered)
	}
	return all
}

// state is what the first rank hears of this one.
func (r *recorder) state() string {
	text, err := json.Marshal(r.last(told))
	if err != nil {
		panic("BUG: mpi: " + err.Error())
	}
	return string(text)
}

// lines lists the last collectives, n at most, one a line.
func (r *recorder) lines(n int) string {
	var b strings.Builder
	for _, e := range r.last(n) {
		how := "not left"
		if e.Lasted > 0 {
			how = "took " + e.Lasted.Round(time.Microsecond).String()
		}
		fmt.Fprintf(&b, "\n%v with ranks %s, entered %v ago, %s", e, pmi.Numbers(e.members()), e.Ago.Round(time.Millisecond), how)
	}
	return b.String()
}

// described returns what a collective is called with.
func described(op string, args any) what {
	of := func(t *tensor.Tensor, g collective.Group, detail string) what {
		w := what{Op: op, Detail: detail, First: g.First, Stride: g.Stride, Ranks: g.Ranks}
		if t != nil {
			w.Elements, w.DType = t.NumElements(), t.DType().String()
		}
		return w
	}
	switch a := args.(type) {
	case collective.AllReduceArgs:
		return of(a.Input, a.Group, a.Reduction.String())
	case collective.ReduceArgs:
		return of(a.Input, a.Group, fmt.Sprintf("%v to %d", a.Reduction, a.Root))
	case collective.ReduceScatterArgs:
		return of(a.Input, a.Group, a.Reduction.String())
	case collective.AllGatherArgs:
		return of(a.Input, a.Group, "")
	case collective.BroadcastArgs:
		return of(a.Buffer, a.Group, fmt.Sprintf("from %d", a.Root))
	case collective.AllToAllArgs:
		return of(a.Input, a.Group, "")
	case collective.BarrierArgs:
		return of(nil, a.Group, "")
	}
	panic("BUG: mpi: no collective " + op)
}

// judge says which ranks keep the others waiting, by what each rank has told of itself; "" when
// that does not say.
func judge(states map[int]string, ranks int) string {
	all := make([][]entry, ranks)
	for rank, text := range states {
		if rank < 0 || rank >= ranks || json.Unmarshal([]byte(text), &all[rank]) != nil {
			return ""
		}
		if slices.ContainsFunc(all[rank], func(e entry) bool { return !e.inside(ranks) }) {
			return ""
		}
	}
	earliest := map[what]entry{} // by group, of those in which ranks are
	var groups []what            // in the order of the ranks
	for rank := range ranks {
		now, waits := current(all[rank])
		if !waits {
			continue
		}
		group := what{First: now.First, Stride: now.Stride, Ranks: now.Ranks}
		before, seen := earliest[group]
		if !seen {
			groups = append(groups, group)
		}
		if !seen || now.Number < before.Number {
			earliest[group] = now
		}
	}
	var found []string
	for _, group := range groups {
		if text := compare(all, earliest[group], states); text != "" {
			found = append(found, text)
		}
	}
	return strings.Join(found, "; ")
}

// inside reports whether a job of some ranks has the group: what another process tells may be
// wrong.
func (w what) inside(ranks int) bool {
	return w.Ranks > 0 && w.Ranks <= ranks && w.First >= 0 && w.First < ranks && w.Stride >= 0 && w.Stride < ranks &&
		w.First+(w.Ranks-1)*max(w.Stride, 1) < ranks
}

// current returns the collective in which a rank is.
func current(entries []entry) (entry, bool) {
	if len(entries) == 0 {
		return entry{}, false
	}
	e := entries[len(entries)-1]
	return e, e.Lasted == 0
}

// numbered returns the collective of a group with a number.
func numbered(entries []entry, like entry) (entry, bool) {
	for _, e := range entries {
		if e.Number == like.Number && e.First == like.First && e.Stride == like.Stride && e.Ranks == like.Ranks {
			return e, true
		}
	}
	return entry{}, false
}

// compare says which ranks of a group have not entered the collective in which one of them is, or
// have entered it with something else. What most have is what was meant.
func compare(all [][]entry, now entry, states map[int]string) string {
	by := map[what][]int{}
	most := now.what
	for _, rank := range now.members() {
		if e, in := numbered(all[rank], now); in {
			if by[e.what] = append(by[e.what], rank); len(by[e.what]) > len(by[most]) {
				most = e.what
			}
		}
	}
	meant := entry{what: most, Number: now.Number}
	var faults []string
	for _, rank := range now.members() {
		e, in := numbered(all[rank], now)
		last, waits := current(all[rank])
		switch _, answers := states[rank]; {
		case in && e.what == most:
		case in:
			faults = append(faults, fmt.Sprintf("rank %d has entered %v", rank, e))
		case !answers:
			faults = append(faults, fmt.Sprintf("rank %d does not answer", rank))
		case waits:
			faults = append(faults, fmt.Sprintf("rank %d is in %v with ranks %s", rank, last, pmi.Numbers(last.members())))
		case last.Number == 0:
			faults = append(faults, fmt.Sprintf("rank %d hangs: it has entered no collective", rank))
		default:
			faults = append(faults, fmt.Sprintf("rank %d hangs: it has not entered it; its last one was %v, which it left %v ago", rank, last, (last.Ago-last.Lasted).Round(100*time.Millisecond)))
		}
	}
	if faults == nil {
		return ""
	}
	return fmt.Sprintf("%s of ranks %s in %v: %s", plural(len(by[most]), "1 rank", "%d ranks"), pmi.Numbers(now.members()), meant, strings.Join(faults, ", "))
}

func plural(n int, one, several string) string {
	if n == 1 {
		return one
	}
	return fmt.Sprintf(several, n)
}
