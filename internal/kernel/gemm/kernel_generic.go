package gemm

// genericMR and genericNR are the tile of the kernel in plain Go. Its sums, with an operand of each
// side, fit in 16 registers.
const (
	genericMR = 4
	genericNR = 4
)

// gemmGeneric computes a whole tile of 4×4.
func gemmGeneric(t *Tile) {
	var c00, c01, c02, c03 float32
	var c10, c11, c12, c13 float32
	var c20, c21, c22, c23 float32
	var c30, c31, c32, c33 float32
	r0, r1, r2, r3 := t.A, t.A[t.ARow:], t.A[2*t.ARow:], t.A[3*t.ARow:]
	at := 0
	for k := range t.K {
		b := t.B[k*t.BStep:][:4]
		b0, b1, b2, b3 := b[0], b[1], b[2], b[3]
		a := r0[at]
		c00 += a * b0
		c01 += a * b1
		c02 += a * b2
		c03 += a * b3
		a = r1[at]
		c10 += a * b0
		c11 += a * b1
		c12 += a * b2
		c13 += a * b3
		a = r2[at]
		c20 += a * b0
		c21 += a * b1
		c22 += a * b2
		c23 += a * b3
		a = r3[at]
		c30 += a * b0
		c31 += a * b1
		c32 += a * b2
		c33 += a * b3
		at += t.AStep
	}
	t.row(0, c00, c01, c02, c03)
	t.row(1, c10, c11, c12, c13)
	t.row(2, c20, c21, c22, c23)
	t.row(3, c30, c31, c32, c33)
}

func (t *Tile) row(r int, s0, s1, s2, s3 float32) {
	c := t.C[r*t.CRow:][:4]
	if t.Beta == 0 {
		c[0], c[1], c[2], c[3] = t.Alpha*s0, t.Alpha*s1, t.Alpha*s2, t.Alpha*s3
		return
	}
	c[0] = t.Alpha*s0 + t.Beta*c[0]
	c[1] = t.Alpha*s1 + t.Beta*c[1]
	c[2] = t.Alpha*s2 + t.Beta*c[2]
	c[3] = t.Alpha*s3 + t.Beta*c[3]
}
