package data

import "fmt"

// Sampler visits the windows of a Blend. Sample p belongs to the part that the Blend picks and is
// there window π(q mod n) of the n windows of the part, where q is the number of earlier samples of
// the part and π is a permutation that depends on the seed, on the part and on the epoch ⌊q/n⌋. The
// position, the number of samples consumed, is its whole state.
type Sampler struct {
	blend    *Blend
	seed     uint64
	position uint64
	orders   []epochOrder // of each part
}

// epochOrder is the order of the windows of a part in one of its epochs.
type epochOrder struct {
	seed  uint64
	epoch uint64
	order permutation
}

// NewSampler returns a Sampler at position 0. A Blend without windows is an error of the program.
func NewSampler(b *Blend, seed uint64) *Sampler {
	s := &Sampler{blend: b, seed: seed}
	for i := range b.parts {
		own := seed
		if i > 0 {
			own ^= mix(uint64(i))
		}
		s.orders = append(s.orders, epochOrder{seed: own, order: newPermutation(uint64(b.parts[i].len()), own, 0)})
	}
	return s
}

// Position returns the number of samples consumed.
func (s *Sampler) Position() uint64 { return s.position }

// Seek sets the number of samples consumed: the next Batch is the one that would
// have followed them.
func (s *Sampler) Seek(position uint64) { s.position = position }

// Batch fills dst with the next samples, row-major [rows, seq_length+1], and
// advances the position by rows. A dst whose length is not a positive multiple
// of seq_length+1 is an error. It does not allocate.
func (s *Sampler) Batch(dst []int32) error {
	rows, err := s.blend.rows(dst)
	if err != nil {
		return err
	}
	width := s.blend.seq + 1
	for r := range rows {
		part, q := s.blend.pick(s.position)
		o := &s.orders[part]
		if epoch := q / o.order.n; epoch != o.epoch {
			o.epoch, o.order = epoch, newPermutation(o.order.n, o.seed, epoch)
		}
		p := &s.blend.parts[part]
		if err := p.set.window(dst[r*width:(r+1)*width], p.blocks, int(o.order.at(q%o.order.n))); err != nil {
			return err
		}
		s.position++
	}
	return nil
}

// Validation visits a fixed choice of the windows of a Blend.
type Validation struct {
	blend  *Blend
	counts []int // of the windows of each part
	count  int
	cursor int
}

// NewValidation returns a Validation of at most limit windows, evenly spaced over the windows of
// each part of a Blend; a limit of 0 takes all of them. The parts have the windows in proportion to
// their weights, as far as they have so many. A Blend without windows is an error.
func NewValidation(b *Blend, limit int) (*Validation, error) {
	if b.Len() == 0 {
		return nil, fmt.Errorf("data: given a split without validation windows, want a validation fraction above 0")
	}
	if limit < 0 {
		return nil, fmt.Errorf("data: given a limit of %d validation windows, want 0 (all) or more", limit)
	}
	v := &Validation{blend: b, count: b.Len(), counts: make([]int, len(b.parts))}
	if limit > 0 {
		v.count = min(v.count, limit)
	}
	for i := range b.parts {
		v.counts[i] = b.parts[i].len()
	}
	if v.count < b.Len() {
		v.choose()
	}
	return v, nil
}

// choose divides count windows among the parts.
func (v *Validation) choose() {
	most := v.counts
	v.counts = make([]int, len(most))
	left := v.count
	for i := uint64(0); left > 0 && i < uint64(v.count); i++ {
		if part, _ := v.blend.pick(i); v.counts[part] < most[part] {
			v.counts[part]++
			left--
		}
	}
	for part := range most { // what parts with too few windows leave
		more := min(left, most[part]-v.counts[part])
		v.counts[part] += more
		left -= more
	}
}

// Len returns the number of windows that are visited.
func (v *Validation) Len() int { return v.count }

// Reset goes back to the first window, so that every evaluation sees the same.
func (v *Validation) Reset() { v.cursor = 0 }

// Batch fills dst with the next windows, row-major [rows, seq_length+1], and starts over after the
// last one. A dst whose length is not a positive multiple of seq_length+1 is an error. It does not
// allocate.
func (v *Validation) Batch(dst []int32) error {
	rows, err := v.blend.rows(dst)
	if err != nil {
		return err
	}
	width := v.blend.seq + 1
	for r := range rows {
		part, i := 0, v.cursor
		for i >= v.counts[part] {
			i -= v.counts[part]
			part++
		}
		p := &v.blend.parts[part]
		if err := p.set.window(dst[r*width:(r+1)*width], p.blocks, i*p.len()/v.counts[part]); err != nil {
			return err
		}
		v.cursor = (v.cursor + 1) % v.count
	}
	return nil
}
