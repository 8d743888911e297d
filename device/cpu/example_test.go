package cpu_test

import (
	"fmt"
	"log"
	"unsafe"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/cpu"
)

// Work in a stream fills memory of the device, and an event marks its end.
func Example() {
	b := cpu.New()
	p, err := b.Alloc(4)
	must(err)
	event, err := b.CreateEvent()
	must(err)

	memory := unsafe.Slice((*byte)(p), 4)
	must(b.Submit(device.DefaultStream, func() { copy(memory, "done") }))
	must(b.RecordEvent(event, device.DefaultStream))
	must(b.SyncEvent(event))
	fmt.Println(string(memory))

	must(b.FreeEvent(event))
	must(b.Free(p))
	must(b.Close())
	// Output: done
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
