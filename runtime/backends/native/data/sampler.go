package data

import "fmt"

// Sampler visits the training windows of a Set: position p is window
// π(p mod n) of the n training windows, where π is a permutation that depends on
// the seed and on the epoch ⌊p/n⌋. The position is its whole state.
type Sampler struct {
	set      *Set
	seed     uint64
	position uint64
	epoch    uint64
	order    permutation // of epoch
}

// NewSampler returns a Sampler at position 0.
func NewSampler(s *Set, seed uint64) *Sampler {
	return &Sampler{set: s, seed: seed, order: newPermutation(uint64(s.TrainWindows()), seed, 0)}
}

// Position returns the number of samples consumed.
func (s *Sampler) Position() uint64 { return s.position }

// Seek sets the number of samples consumed: the next Batch is the one that would
// have followed them.
func (s *Sampler) Seek(position uint64) { s.position = position }

// Epoch returns how many times all training windows were visited, as a fraction.
func (s *Sampler) Epoch() float64 { return float64(s.position) / float64(s.order.n) }

// Batch fills dst with the next samples, row-major [rows, seq_length+1], and
// advances the position by rows. A dst whose length is not a positive multiple
// of seq_length+1 is an error. It does not allocate.
func (s *Sampler) Batch(dst []int32) error {
	rows, err := s.set.rows(dst)
	if err != nil {
		return err
	}
	width := s.set.seq + 1
	for r := range rows {
		if epoch := s.position / s.order.n; epoch != s.epoch {
			s.epoch = epoch
			s.order = newPermutation(s.order.n, s.seed, epoch)
		}
		i := s.order.at(s.position % s.order.n)
		if err := s.set.window(dst[r*width:(r+1)*width], s.set.train, int(i)); err != nil {
			return err
		}
		s.position++
	}
	return nil
}

// Validation visits a fixed choice of the validation windows of a Set.
type Validation struct {
	set    *Set
	count  int
	cursor int
}

// NewValidation returns a Validation of at most limit windows, evenly spaced over all validation
// windows; a limit of 0 takes all of them. A Set without validation windows is an error.
func NewValidation(s *Set, limit int) (*Validation, error) {
	if s.ValidWindows() == 0 {
		return nil, fmt.Errorf("data: got a split without validation windows, want a validation fraction above 0")
	}
	if limit < 0 {
		return nil, fmt.Errorf("data: got a limit of %d validation windows, want 0 (all) or more", limit)
	}
	count := s.ValidWindows()
	if limit > 0 {
		count = min(count, limit)
	}
	return &Validation{set: s, count: count}, nil
}

// Len returns the number of windows that are visited.
func (v *Validation) Len() int { return v.count }

// Reset goes back to the first window, so that every evaluation sees the same.
func (v *Validation) Reset() { v.cursor = 0 }

// Batch fills dst with the next windows, row-major [rows, seq_length+1], and starts over after the
// last one. A dst whose length is not a positive multiple of seq_length+1 is an error. It does not
// allocate.
func (v *Validation) Batch(dst []int32) error {
	rows, err := v.set.rows(dst)
	if err != nil {
		return err
	}
	width := v.set.seq + 1
	for r := range rows {
		i := v.cursor * v.set.ValidWindows() / v.count
		if err := v.set.window(dst[r*width:(r+1)*width], v.set.valid, i); err != nil {
			return err
		}
		v.cursor = (v.cursor + 1) % v.count
	}
	return nil
}
