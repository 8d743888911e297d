package native

import (
	"errors"
	"time"

	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/world"
)

// rankLinks are the exchanges of gradients and weights of a rank, each among the ranks that have
// the same weights. A rank alone has none.
type rankLinks []link

type link struct {
	model.Flat
	*world.Exchange
}

// add adds the exchange of weights.
func (all *rankLinks) add(f model.Flat, x *world.Exchange) { *all = append(*all, link{f, x}) }

// need waits for the weights of a depth, and of those above it that were not needed yet.
func (all rankLinks) need(depth int) error {
	var faults []error
	for _, l := range all {
		faults = append(faults, l.Exchange.Need(l.Final(depth+1)))
	}
	return errors.Join(faults...)
}

// send says that the gradients of the weights of a depth and above are final.
func (all rankLinks) send(depth int) {
	for _, l := range all {
		l.Exchange.Send(l.Final(depth))
	}
}

// wait returns when the gradients are added up.
func (all rankLinks) wait() error {
	var faults []error
	for _, l := range all {
		faults = append(faults, l.Exchange.Wait())
	}
	return errors.Join(faults...)
}

// gather sends the weights that this rank has updated.
func (all rankLinks) gather() {
	for _, l := range all {
		l.Exchange.Gather()
	}
}

// begun reports whether gradients of the step were sent.
func (all rankLinks) begun() bool {
	for _, l := range all {
		if l.Exchange.Begun() {
			return true
		}
	}
	return false
}

// times returns how long this rank has exchanged gradients and weights, and waited for that.
func (all rankLinks) times() (spent, waited time.Duration) {
	for _, l := range all {
		s, w := l.Exchange.Times()
		spent, waited = s, waited+w // one queue serves all of them
	}
	return spent, waited
}
