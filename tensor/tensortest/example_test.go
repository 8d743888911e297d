package tensortest_test

import (
	"fmt"

	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// report stands for the *testing.T of a test.
type report struct{}

func (report) Helper() {}

func (report) Errorf(string, ...any) { fmt.Println("a difference was reported") }

func (report) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// A kernel writes to guarded memory, is compared with a tolerance, and must not have written beyond
// its operand.
func Example() {
	t := report{}
	out, check := tensortest.Guarded(t, tensor.F32, 3)
	copy(tensor.Data[float32](out), []float32{1, 2, 3.001})
	check(t)
	fmt.Println(tensortest.CloseTo(t, []float64{1, 2, 3}, out, tensor.Tolerance{Abs: 1e-2}))
	fmt.Println(tensortest.CloseTo(t, []float64{1, 2, 3}, out, tensor.Tolerance{Abs: 1e-6}))
	// Output:
	// true
	// a difference was reported
	// false
}
