package flagos

import "github.com/primus-fl/primus/impls/flagos/internal/host"

// stepFloats returns the size of the f32 copies of x and y for one step, 0 when they are f32.
func (c *rotation) stepFloats() int {
	if !c.x.Narrow() {
		return 0
	}
	return 2 * c.heads * c.d
}

// turnHalf rotates the narrow heads of one step by the angles in a row of t.
func (c *rotation) turnHalf(t *angles, row, sequence, step int) {
	n := c.heads * c.d
	w := *c
	w.x = host.Heads{Data: t.buf[:n], Head: c.d}
	w.y = host.Heads{Data: t.buf[n:][:n], Head: c.d}
	w.same = false
	c.x.Widen(w.x.Data, sequence, step, c.heads, c.d)
	cos, sin := t.row(row)
	w.turn(&angles{cos: cos, sin: sin, d2: t.d2}, 0, 0, 1)
	c.y.Round(w.y.Data, sequence, step, c.heads, c.d)
}
