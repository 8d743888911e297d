package model

// Watch follows the weights of a pass. Functions may be nil.
type Watch struct {
	// Needs is called before a forward pass reads the weights of a depth, in ascending order. Its
	// error ends the pass.
	Needs func(depth int) error

	// Final is called by Backward when the gradients of all weights of a depth and above are final,
	// in descending order.
	Final func(depth int)
}

// Need calls Needs.
func (w *Watch) Need(depth int) error {
	if w.Needs == nil {
		return nil
	}
	return w.Needs(depth)
}

// Finish calls Final.
func (w *Watch) Finish(depth int) {
	if w.Final != nil {
		w.Final(depth)
	}
}
