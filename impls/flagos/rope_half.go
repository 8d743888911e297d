package flagos

// stepFloats returns the size of the f32 copies of x and y for one step, 0 when they are f32.
func (c *rope) stepFloats() int {
	if !c.x.narrow() {
		return 0
	}
	return 2 * c.heads * c.d
}

// turnHalf rotates the narrow heads of one step by the angles in a row of t.
func (c *rope) turnHalf(t *angles, row, sequence, step int) {
	n := c.heads * c.d
	w := *c
	w.x = heads{data: t.buf[:n], head: c.d}
	w.y = heads{data: t.buf[n:][:n], head: c.d}
	w.same = false
	c.x.widen(w.x.data, sequence, step, c.heads, c.d)
	cos, sin := t.row(row)
	w.turn(&angles{cos: cos, sin: sin, d2: t.d2}, 0, 0, 1)
	c.y.round(w.y.data, sequence, step, c.heads, c.d)
}
