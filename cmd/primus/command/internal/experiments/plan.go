package experiments

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/primus-fl/primus/runtime/train"
)

// Contended says what several patches of a phase change.
func Contended(phases []train.PhasePlan) string {
	var b strings.Builder
	for _, phase := range phases {
		for _, symbol := range slices.Sorted(maps.Keys(phase.Contended)) {
			fmt.Fprintf(&b, "\n%s is changed by %s, in this order\n", symbol, strings.Join(phase.Contended[symbol], ", "))
		}
	}
	return b.String()
}

// UnknownPatches says what to do about patches that a plan does not list.
func UnknownPatches(which string) string {
	return which + ": primus patches plan --repo DIR --config FILE says which of them a checkout of Primus makes"
}
