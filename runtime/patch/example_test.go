package patch_test

import (
	"fmt"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/runtime/patch"
)

// A trainer declares what may be replaced; a patch that a parameter switches on wraps it.
func Example() {
	schedule := patch.NewPoint[func(step int) float64]("my.schedule", "the learning rate of a step")
	points := &patch.Points{}
	slot := patch.Declare(points, schedule, func(int) float64 { return 0.1 })

	set, err := patch.NewSet(patch.Patch{
		ID: "my.halve", Description: "Halve the learning rate", Phase: patch.Setup, Style: patch.Wrapping,
		Condition: patch.When("halve"),
		Apply: func(c *patch.Context) error {
			return patch.Wrap(c, schedule, func(next func(int) float64) func(int) float64 {
				return func(step int) float64 { return next(step) / 2 }
			})
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tokens := range [][]string{nil, {"halve=true"}} {
		params, _, err := document.ParseOverrides(tokens)
		if err != nil {
			fmt.Println(err)
			return
		}
		report, err := set.Run(&patch.Context{Backend: "mine", Phase: patch.Setup, Params: params, Points: points}, patch.Options{})
		fmt.Println(report.Applied, err, slot.Func()(1))
	}
	// Output:
	// [] <nil> 0.1
	// [my.halve] <nil> 0.05
}
