package pipeline

import "slices"

// plan is an order of forward and backward passes for any number of micro batches.
type plan struct {
	order func(s Shape) [][]Pass
	limit int // chunks with activations on a rank, for which the order runs to its end
}

// arrangement is a plan with rules that place the gradients of weights.
type arrangement struct {
	plan
	rules
	times Times
}

// arrangements returns the plans with several rules. With a window passes may overtake others.
func arrangements(plans []plan, times Times, window int) []arrangement {
	var list []arrangement
	windows := []int{window}
	if window > 0 {
		windows = []int{2, window, 0, 4, window / 6, 3, 1, 6}
	}
	for _, w := range windows {
		for _, patient := range []bool{false, true} {
			for _, p := range plans {
				list = append(list, arrangement{p, rules{limit: p.limit, window: w, patient: patient}, times})
			}
		}
	}
	if times.equal() {
		return list
	}
	// Times of equal length give the tables of the papers.
	equal := slices.Clone(list)
	for i := range equal {
		equal[i].times = Times{}
	}
	return append(equal, list...)
}

func (a arrangement) table(s Shape) Table {
	times := a.times
	if times.Ranks == nil && times.Chunks == nil {
		times = unit(s)
	}
	return arrange("", s, a.order(s), times, a.rules)
}

// effort bounds how many passes are arranged in order to compare arrangements.
const effort = 400_000

// fastest returns the table of the arrangement that is the fastest with the given times, and among
// equal ones the one that needs the least memory. Where there are many micro batches it compares
// fewer, and where there are many passes not all arrangements.
func fastest(s Shape, times Times, list []arrangement) Table {
	few := s
	few.MicroBatches = min(s.MicroBatches, max(3*s.Ranks, 64))
	spent := 0
	best := list[0]
	var found Simulation
	for i, a := range list {
		if len(list) == 1 {
			break
		}
		t := a.table(few)
		if r := simulate(t, times); i == 0 || r.better(found) {
			best, found = a, r
		}
		if spent += few.Ranks * few.MicroBatches * few.Chunks * 3; spent > effort {
			break
		}
	}
	return best.table(s)
}

// better reports whether a simulation is faster than another, or as fast with less memory.
func (s Simulation) better(than Simulation) bool {
	const equal = 1e-9
	if s.StepTime < than.StepTime*(1-equal) {
		return true
	}
	return s.StepTime <= than.StepTime*(1+equal) && s.Peak() < than.Peak()
}
