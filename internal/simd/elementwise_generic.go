package simd

func axpyGeneric(a float32, x, y []float32) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] += a * v
	}
}

func scaleGeneric(a float32, dst, x []float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = a * v
	}
}

func addGeneric(dst, x, y []float32) {
	dst, y = dst[:len(x)], y[:len(x)]
	for i, v := range x {
		dst[i] = v + y[i]
	}
}

func mulGeneric(dst, x, y []float32) {
	dst, y = dst[:len(x)], y[:len(x)]
	for i, v := range x {
		dst[i] = v * y[i]
	}
}

func mulSubGeneric(dst, x, y []float32, c float32) {
	dst, y = dst[:len(x)], y[:len(x)]
	for i, v := range x {
		dst[i] = v * (y[i] - c)
	}
}

func clampGeneric(dst, x []float32, lo, hi float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = min(max(v, lo), hi)
	}
}

func keepGeneric(dst, y, x []float32, lo, hi float32) {
	dst, y = dst[:len(x)], y[:len(x)]
	for i, v := range x {
		if v < lo || v > hi {
			dst[i] = 0
		} else {
			dst[i] = y[i]
		}
	}
}
