package weights

import (
	"fmt"
	"math"
	"strings"

	"github.com/primus-fl/primus/tensor"
)

// NonFinite counts the numbers of a tensor that are NaN or infinite.
type NonFinite struct {
	Tensor        string
	NaN, Infinite int
	Of            int // numbers
}

// String names the tensor and counts them.
func (n NonFinite) String() string {
	var counts []string
	if n.NaN > 0 {
		counts = append(counts, fmt.Sprintf("%d NaN", n.NaN))
	}
	if n.Infinite > 0 {
		counts = append(counts, fmt.Sprintf("%d infinite", n.Infinite))
	}
	return fmt.Sprintf("%s has %s of %d numbers", n.Tensor, strings.Join(counts, " and "), n.Of)
}

// NonFiniteError says which weights are NaN or infinite.
type NonFiniteError struct {
	Path    string
	Tensors []NonFinite
}

// Error names the tensors and counts their numbers.
func (e *NonFiniteError) Error() string {
	const shown = 8
	var texts []string
	for _, t := range e.Tensors[:min(shown, len(e.Tensors))] {
		texts = append(texts, t.String())
	}
	if more := len(e.Tensors) - shown; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more tensors", more))
	}
	return fmt.Sprintf("weights: %s: given NaN or infinities, want finite numbers: %s", e.Path, strings.Join(texts, "; "))
}

// Count counts the numbers of a tensor of f32, bf16 or f16 that are NaN or infinite.
func Count(name string, t *tensor.Tensor) (NonFinite, error) {
	n := NonFinite{Tensor: name, Of: t.NumElements()}
	var err error
	switch t.DType() {
	case tensor.BF16:
		err = countBits(&n, t, func(v tensor.BFloat16) uint32 { return uint32(v) }, 0x7f80)
	case tensor.F16:
		err = countBits(&n, t, func(v tensor.Float16) uint32 { return uint32(v) }, 0x7c00)
	case tensor.F32:
		err = countBits(&n, t, math.Float32bits, 0x7f800000)
	default:
		return n, fmt.Errorf("%s: given %v, want f32, bf16 or f16", name, t.DType())
	}
	if err != nil {
		return n, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}

// countBits counts numbers whose bits of the exponent, all of which exponent has, are set.
func countBits[T tensor.Element](n *NonFinite, t *tensor.Tensor, bits func(T) uint32, exponent uint32) error {
	values, err := tensor.Read[T](t)
	for _, v := range values {
		if b := bits(v); b&exponent == exponent {
			if b&(exponent&-exponent-1) != 0 {
				n.NaN++
			} else {
				n.Infinite++
			}
		}
	}
	return err
}

// add adds the tensor if it has such numbers.
func (e *NonFiniteError) add(n NonFinite) {
	if n.NaN+n.Infinite > 0 {
		e.Tensors = append(e.Tensors, n)
	}
}

// refused returns the error, nil if there are no such numbers.
func (e *NonFiniteError) refused() error {
	if len(e.Tensors) == 0 {
		return nil
	}
	return e
}
