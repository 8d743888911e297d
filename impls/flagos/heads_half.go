package flagos

// at returns the index of the first element of a vector.
func (h *heads) at(sequence, step, head int) int {
	return sequence*h.sequence + step*h.step + head*h.head
}

// widen copies the n vectors of d elements of a step to dst.
func (h *heads) widen(dst []float32, sequence, step, n, d int) {
	if h.head == d {
		n, d = 1, n*d
	}
	for i := range n {
		h.load(dst[i*d:][:d], h.at(sequence, step, i))
	}
}

// round copies src to the n vectors of d elements of a step.
func (h *heads) round(src []float32, sequence, step, n, d int) {
	if h.head == d {
		n, d = 1, n*d
	}
	for i := range n {
		h.store(h.at(sequence, step, i), src[i*d:][:d])
	}
}
