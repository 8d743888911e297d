//go:build linux

package main

import (
	"fmt"
	"slices"
)

// outcome is what must happen to a run with a hostile plugin.
type outcome string

// The outcomes. A run that is not ended trains to its end with the losses of a run without plugins.
const (
	rejected  outcome = "rejected by its probe"
	contained outcome = "contained: another impl takes over"
	ended     outcome = "the run ends with an error"
	restored  outcome = "restored, with a warning"
	accused   outcome = "found by verification"
	used      outcome = "used"
)

// attack is one case of the matrix.
type attack struct {
	phase, misdeed string
	late           bool // the misdeed happens in the run, but not in the probe
	isolated       bool
}

func (a attack) String() string {
	where := "in the process of the run"
	if a.isolated {
		where = "isolated"
	}
	return fmt.Sprintf("%s in %s, %s, %s", a.misdeed, a.phase, a.when(), where)
}

// when returns when the misdeed happens, as the library reads it from its environment.
func (a attack) when() string {
	if a.late {
		return "late"
	}
	return "always"
}

var (
	// deadly misdeeds end their process.
	deadly = []string{"segv", "abort", "illegal", "stack", "kill", "group", "exit", "quick_exit", "_exit"}
	// everywhere are misdeeds that are possible in any function.
	everywhere = append([]string{"hang", "daemon", "rounding", "close"}, deadly...)
	// own are further misdeeds of single phases.
	own = map[string][]string{
		"is_available":   {"text", "status"},
		"supports":       {"text", "status", "write"},
		"workspace_size": {"status"},
		"run":            {"text", "status", "write", "stray"},
	}
	phases = []string{"constructor", "entry", "is_available", "supports", "workspace_size", "run", "thread"}
)

// attacks returns all cases.
func attacks() []attack {
	var all []attack
	for _, phase := range phases {
		misdeeds := slices.Concat(everywhere, own[phase])
		if phase == "thread" {
			misdeeds = deadly
		}
		for _, misdeed := range misdeeds {
			for _, late := range []bool{false, true} {
				for _, isolated := range []bool{false, true} {
					if a := (attack{phase, misdeed, late, isolated}); a.makesSense() {
						all = append(all, a)
					}
				}
			}
		}
	}
	return all
}

// makesSense excludes attacks that cannot happen, and those about which nothing can be promised:
// what a library does for the first time in the process of a run that it does not share with a
// supervisor.
func (a attack) makesSense() bool {
	if !a.late {
		return true
	}
	if a.phase == "is_available" {
		return false // which only the probe calls
	}
	return a.isolated || !slices.Contains([]string{"hang", "close", "group", "_exit", "stray"}, a.misdeed)
}

// expected returns what must happen to a run.
func (a attack) expected() outcome {
	switch a.misdeed {
	case "rounding":
		if a.phase == "is_available" {
			return used // only the probe calls it
		}
		return restored
	case "daemon":
		return used
	case "text", "status":
		return used // of a function that reports a failure
	case "write", "stray":
		switch {
		case a.isolated:
			return contained
		case a.late:
			return accused
		}
		return rejected
	}
	called := slices.Contains([]string{"supports", "workspace_size", "run", "thread"}, a.phase)
	switch {
	case a.isolated && (a.late || called):
		return contained
	case a.late:
		return ended
	}
	return rejected
}
