package backend

import "sync/atomic"

// Requests holds requests to a run while it trains, such as those from the page of a run. The
// trainer handles them between steps. The methods of a nil *Requests do nothing.
type Requests struct{ save atomic.Bool }

// Save requests a checkpoint after the current step.
func (r *Requests) Save() {
	if r != nil {
		r.save.Store(true)
	}
}

// TakeSave reports whether a checkpoint is requested, and clears the request.
func (r *Requests) TakeSave() bool { return r != nil && r.save.Swap(false) }
