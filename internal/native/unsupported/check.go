package unsupported

import (
	"fmt"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/native/model"
)

// Run holds the values with which some parameters are compared.
type Run struct{ model.Config }

// Known reports whether a parameter of Megatron affects what a run computes and is missing in the
// native trainer.
func Known(name string) bool {
	_, known := rules()[name]
	return known
}

// Check returns an error that begins with the name if the value of a parameter asks for something
// that the trainer does not do. It returns nil for other values and for names that are not Known.
func Check(name string, v document.Value, run Run) error {
	r, known := rules()[name]
	if !known || v.IsNull() || r.matters != nil && !r.matters(run) {
		return nil
	}
	neutral := r.neutral(run)
	for _, n := range neutral {
		if equal(v, n) {
			return nil
		}
	}
	return fmt.Errorf("%s: given %s, want %s: %s", name, v.Describe(), alternatives(neutral), r.does)
}

// equal compares a value with a bool, a string, a float64, or nil for an empty list.
func equal(v document.Value, want any) bool {
	switch w := want.(type) {
	case bool:
		got, ok := v.Bool()
		return ok && got == w
	case float64:
		got, ok := v.Float64()
		return ok && got == w
	case string:
		return v.Kind() == document.KindString && strings.EqualFold(v.Text(), w)
	default:
		items, ok := v.List()
		return ok && len(items) == 0
	}
}

// alternatives lists the neutral values for a sentence. Null is always one of them.
func alternatives(neutral []any) string {
	var words []string
	for _, n := range neutral {
		if n != nil {
			words = append(words, fmt.Sprint(n))
		}
	}
	return strings.Join(append(words, "null"), " or ")
}
