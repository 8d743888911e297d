package tensortest

import "fmt"

// eachIndex calls f with every index of a shape in row-major order. f must not keep the slice.
func eachIndex(shape []int, f func(index []int)) {
	n := 1
	for _, axis := range shape {
		n *= axis
	}
	index := make([]int, len(shape))
	for range n {
		f(index)
		for axis := len(shape) - 1; axis >= 0; axis-- {
			if index[axis]++; index[axis] < shape[axis] {
				break
			}
			index[axis] = 0
		}
	}
}

// coordinates returns the index of the element at a row-major position.
func coordinates(shape []int, at int) []int {
	index := make([]int, len(shape))
	for axis := len(shape) - 1; axis >= 0; axis-- {
		index[axis] = at % shape[axis]
		at /= shape[axis]
	}
	return index
}

func plural(n int) string {
	if n == 1 {
		return "1 element"
	}
	return fmt.Sprintf("%d elements", n)
}
