package vector

func dotRowsGeneric(dst, x, y []float32, pitch int) {
	for i := range dst {
		dst[i] = dotGeneric(x, y[i*pitch:][:len(x)])
	}
}

func dotRowsBF16Generic(dst, x []float32, y []uint16, pitch int) {
	for i := range dst {
		dst[i] = dotHalfGeneric(x, y[i*pitch:][:len(x)], false)
	}
}

func dotRowsF16Generic(dst, x []float32, y []uint16, pitch int) {
	for i := range dst {
		dst[i] = dotHalfGeneric(x, y[i*pitch:][:len(x)], true)
	}
}

func axpyRowsGeneric(dst, a, y []float32, pitch int) {
	for i, v := range a {
		axpyGeneric(v, y[i*pitch:][:len(dst)], dst)
	}
}

func sumRowsGeneric(dst, w []float32, wStep int, y []float32, pitch int, rows []int32) {
	for i, r := range rows {
		row, weight := y[int(r)*pitch:][:len(dst)], w[i*wStep]
		if i == 0 {
			scaleGeneric(weight, dst, row)
		} else {
			axpyGeneric(weight, row, dst)
		}
	}
}

// dotHalfGeneric is dotGeneric for numbers of 16 bits: binary16, or bfloat16.
func dotHalfGeneric(x []float32, y []uint16, binary16 bool) float32 {
	var part [64]float32
	var s [4]float32
	for len(x) > 0 {
		n := min(len(x), len(part))
		if binary16 {
			widenF16Generic(part[:n], y[:n])
		} else {
			widenBF16Generic(part[:n], y[:n])
		}
		addProducts(&s, x[:n], part[:n])
		x, y = x[n:], y[n:]
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}
