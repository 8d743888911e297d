package native

import (
	"errors"
	"time"

	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/world"
)

// Links are the exchanges of gradients and weights of a rank, each among the ranks that have the
// same weights. A rank alone has none.
type Links []link

type link struct {
	model.Flat
	*world.Exchange
}

// Add adds the exchange of weights.
func (all *Links) Add(f model.Flat, x *world.Exchange) { *all = append(*all, link{f, x}) }

// Need waits for the weights of a depth, and of those above it that were not needed yet.
func (all Links) Need(depth int) error {
	var faults []error
	for _, l := range all {
		faults = append(faults, l.Exchange.Need(l.Final(depth+1)))
	}
	return errors.Join(faults...)
}

// Send says that the gradients of the weights of a depth and above are final.
func (all Links) Send(depth int) {
	for _, l := range all {
		l.Exchange.Send(l.Final(depth))
	}
}

// Wait returns when the gradients are added up.
func (all Links) Wait() error {
	var faults []error
	for _, l := range all {
		faults = append(faults, l.Exchange.Wait())
	}
	return errors.Join(faults...)
}

// Gather sends the weights that this rank has updated.
func (all Links) Gather() {
	for _, l := range all {
		l.Exchange.Gather()
	}
}

// Begun reports whether gradients of the step were sent.
func (all Links) Begun() bool {
	for _, l := range all {
		if l.Exchange.Begun() {
			return true
		}
	}
	return false
}

// Times returns how long this rank has exchanged gradients and weights, and waited for that.
func (all Links) Times() (spent, waited time.Duration) {
	for _, l := range all {
		s, w := l.Exchange.Times()
		spent, waited = s, waited+w // one queue serves all of them
	}
	return spent, waited
}
