package opencl_test

import (
	"fmt"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/opencl"
)

// A backend can be registered on every machine. Usable says why it cannot be used, here because the
// library that is named does not exist.
func Example() {
	backend := opencl.New(opencl.Options{Files: []string{"/nonexistent/libOpenCL.so"}})
	defer backend.Close()
	registry := device.NewRegistry()
	if err := registry.Register(backend.Name(), backend); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(registry.Names(), backend.Usable() != nil)
	// Output: [OPENCL] true
}
