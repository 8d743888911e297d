package flagos

// roomOfStep returns the size of a copy of x and of y for one step, 0 when they are f32.
func (c *rope) roomOfStep() int {
	if !c.x.narrow() {
		return 0
	}
	return 2 * c.heads * c.d
}

// turnHalf is turn for heads of 16 bits.
func (c *rope) turnHalf(t *angles, row, sequence, step int) {
	n := c.heads * c.d
	w := *c
	w.x = heads{data: t.room[:n], head: c.d}
	w.y = heads{data: t.room[n:][:n], head: c.d}
	w.same = false
	for h := range c.heads {
		c.x.load(w.x.data[h*c.d:][:c.d], c.x.at(sequence, step, h))
	}
	w.turn(t, row, 0, 0)
	for h := range c.heads {
		c.y.store(c.y.at(sequence, step, h), w.y.data[h*c.d:][:c.d])
	}
}

// at returns the index of the first element of a vector.
func (h *heads) at(sequence, step, head int) int {
	return sequence*h.sequence + step*h.step + head*h.head
}
