package device_test

import (
	"fmt"
	"log"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/cpu"
)

// A program registers the backends that it is built with, and the environment chooses among them.
func ExampleSelect() {
	reg := device.NewRegistry()
	if err := reg.Register("CPU", cpu.New()); err != nil {
		log.Fatal(err)
	}

	chosen, err := device.Select(reg, environment("STEPMESH_BACKEND", "cpu"))
	fmt.Println(chosen.Name, chosen.Source, err)

	chosen, err = device.Select(reg, environment())
	fmt.Println(chosen.Name, chosen.Source, err)
	fmt.Println(chosen.Note)

	_, err = device.Select(reg, environment("STEPMESH_BACKEND", "CPV"))
	fmt.Println(err)
	// Output:
	// CPU STEPMESH_BACKEND <nil>
	// CPU default <nil>
	// device: using backend CPU because GPU is not registered; set STEPMESH_BACKEND=CPU to choose it explicitly
	// device: no such backend: STEPMESH_BACKEND="CPV"; registered: CPU (usable); did you mean "CPU"?
}
