package oppolicy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/primus-fl/primus/opregistry"
)

// String returns the limits of quarantine in words.
func (v QuarantineView) String() string {
	if !v.Enabled {
		return "off"
	}
	return fmt.Sprintf("for %s after %d failures within %s", v.Backoff, v.Failures, v.Window)
}

// String returns in words which calls are verified.
func (v VerifyView) String() string {
	text := v.Mode
	if v.Fraction > 0 && v.Fraction < 1 {
		text += " of all calls"
	}
	if v.Ops != nil {
		text += ", of " + strings.Join(v.Ops, ",")
	}
	if !v.Quarantine {
		text += ", only reported"
	}
	return text
}

// String returns the impl, its share of the calls and for how many of them.
func (v CanaryView) String() string {
	return fmt.Sprintf("%s for %.4g %% of the calls, until %d are compared", v.Impl, 100*v.Fraction, v.Calls)
}

// String returns where a rule applies and what it changes, in the words of a policy file.
func (v RuleView) String() string {
	var where, what []string
	if v.Layers != "" {
		where = append(where, "layers "+v.Layers)
	}
	if v.Phase != PhaseUnspecified {
		where = append(where, "phase "+v.Phase.String())
	}
	if v.Prefer != opregistry.KindUnspecified {
		what = append(what, "prefer "+v.Prefer.String())
	}
	if v.Allow != nil {
		what = append(what, "allow "+cmp.Or(strings.Join(v.Allow, ","), "none"))
	}
	if len(v.Deny) > 0 {
		what = append(what, "deny "+strings.Join(v.Deny, ","))
	}
	for _, pattern := range slices.Sorted(maps.Keys(v.PerOp)) {
		what = append(what, pattern+" "+strings.Join(v.PerOp[pattern], "|"))
	}
	return strings.Join(where, ", ") + ": " + strings.Join(what, ", ")
}
