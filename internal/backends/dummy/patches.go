package dummy

import (
	"fmt"

	"github.com/primus-fl/primus/runtime/patch"
)

// Patches returns the patches of the backend, one of each style.
func Patches() []patch.Patch {
	return []patch.Patch{
		{
			ID: "dummy.args.steps", Description: "Accept steps as another name of train_iters",
			Backend: Framework, Phase: patch.BuildArgs, Style: patch.ArgRewrite,
			Symbols: []string{"arg:train_iters"}, Keys: []string{"steps"}, Condition: patch.When("steps"),
			Apply: func(c *patch.Context) error {
				v, _ := c.Value("steps")
				return c.SetArg("train_iters", v)
			},
		},
		{
			ID: "dummy.greeting_environment", Description: "Tell the greeting to programs that the run starts",
			Backend: Framework, Phase: patch.Setup, Style: patch.Environment,
			Symbols: []string{"env:DUMMY_HELLO"}, Keys: []string{"hello"}, Condition: patch.When("hello"),
			Apply: func(c *patch.Context) error {
				hello, err := patch.Param(c, "hello", "")
				if err != nil {
					return err
				}
				return c.Setenv("DUMMY_HELLO", hello)
			},
		},
		{
			ID: "dummy.log_steps", Description: "Log every step",
			Backend: Framework, Phase: patch.BeforeTrain, Style: patch.Wrapping,
			Symbols: []string{StepPoint.Name()}, Keys: []string{"log_steps"}, Condition: patch.When("log_steps"),
			Apply: func(c *patch.Context) error {
				return patch.Wrap(c, StepPoint, func(next func(int) error) func(int) error {
					return func(step int) error {
						c.Log.Info(fmt.Sprintf("[DummyPretrainTrainer] step %d", step))
						return next(step)
					}
				})
			},
		},
	}
}
