package traintest_test

import (
	"testing"

	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/train/traintest"
)

// The test of a backend plans or runs a module with some parameters and looks at the result.
func Example() {
	var factory backend.Factory // of the backend
	_ = func(t *testing.T) {    // TestPlan in the package of the backend
		lab := traintest.Lab{Factory: factory, Params: "train_iters: 3\n"}
		plan, err := lab.Plan(t)
		if err != nil {
			t.Fatal(err)
		}
		if value, source := traintest.Argument(plan, "train_iters"); value != "3" {
			t.Errorf("given train_iters %s from %s, want 3", value, source)
		}
	}
}
