package flagos

// roomOfStep returns the size of a copy of x and of y for one step, 0 when they are f32.
func (c *rope) roomOfStep() int {
	if !c.x.narrow() {
		return 0
	}
	return 2 * c.heads * c.d
}

// turnHalf turns the heads of 16 bits of one step by the angles in a row of t.
func (c *rope) turnHalf(t *angles, row, sequence, step int) {
	n := c.heads * c.d
	w := *c
	w.x = heads{data: t.room[:n], head: c.d}
	w.y = heads{data: t.room[n:][:n], head: c.d}
	w.same = false
	c.x.widen(w.x.data, sequence, step, c.heads, c.d)
	cos, sin := t.row(row)
	w.turn(&angles{cos: cos, sin: sin, d2: t.d2}, 0, 0, 1)
	c.y.round(w.y.data, sequence, step, c.heads, c.d)
}
