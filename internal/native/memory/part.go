package memory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/sysmem"
)

// Part is a part of the memory of a run.
type Part struct {
	What    string  `json:"part"`
	Bytes   float64 `json:"bytes"`
	Formula string  `json:"formula"`
	Keys    string  `json:"-"` // parameters that make it smaller
}

// Needs is the sum of parts.
type Needs struct {
	Total   float64
	Text    string // with the parts, the largest first
	Largest Part
}

// Sum adds up parts, of which there is at least one.
func Sum(parts []Part) Needs {
	var n Needs
	var words []string
	parts = slices.Clone(parts)
	slices.SortFunc(parts, func(x, y Part) int { return cmp.Compare(y.Bytes, x.Bytes) })
	for _, p := range parts {
		n.Total += p.Bytes
		words = append(words, p.What+" "+sysmem.Text(p.Bytes))
	}
	n.Largest = parts[0]
	n.Text = fmt.Sprintf("%s (%s)", sysmem.Text(n.Total), strings.Join(words, ", "))
	return n
}
