package backend

import "sync/atomic"

// Requests are what others ask of a run while it trains, such as an operator on the page of a run. The trainer looks
// between steps. A nil *Requests has none, and its methods do nothing.
type Requests struct{ save atomic.Bool }

// Save asks for a checkpoint after the step in hand.
func (r *Requests) Save() {
	if r != nil {
		r.save.Store(true)
	}
}

// TakeSave reports whether a checkpoint is asked for, and forgets it.
func (r *Requests) TakeSave() bool { return r != nil && r.save.Swap(false) }
