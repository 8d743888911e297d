package ondevice_test

import (
	"fmt"
	"unsafe"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/opstest/ondevice"
	"github.com/primus-fl/primus/tensor"
)

// accelerator stands for a device backend: memory that only copies reach.
type accelerator struct{ *cpu.Backend }

func (accelerator) CopyIn(dst unsafe.Pointer, src []byte, _ device.Stream) error {
	copy(unsafe.Slice((*byte)(dst), len(src)), src)
	return nil
}

func (accelerator) CopyOut(dst []byte, src unsafe.Pointer, _ device.Stream) error {
	copy(dst, unsafe.Slice((*byte)(src), len(dst)))
	return nil
}

func (accelerator) CopyOn(dst, src unsafe.Pointer, size uint64, _ device.Stream) error {
	copy(unsafe.Slice((*byte)(dst), size), unsafe.Slice((*byte)(src), size))
	return nil
}

func (accelerator) Zero(dst unsafe.Pointer, size uint64, _ device.Stream) error {
	clear(unsafe.Slice((*byte)(dst), size))
	return nil
}

// The impls of a source for a device take operands of the host, so that the cases of the catalogue
// can test them.
func Example() {
	backend := accelerator{cpu.New()}
	defer backend.Close()
	source := ondevice.Source(backend, opregistry.Source{Name: "acme", Impls: []opregistry.Impl{{
		Op: norm.ResidualAdd, ID: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "acme",
		Run: func(_ *opregistry.Exec, a norm.ResidualAddArgs) error {
			out := a.A.Float64s()
			for i, b := range a.B.Float64s() {
				out[i] += b
			}
			return a.Output.SetFloat64s(out)
		},
	}}}, func(err error) { fmt.Println(err) })

	a, _ := tensor.FromSlice([]float32{1, 2})
	b, _ := tensor.FromSlice([]float32{10, 20})
	out, _ := tensor.FromSlice(make([]float32, 2))
	run := source.Impls[0].Run.(func(*opregistry.Exec, norm.ResidualAddArgs) error)
	err := run(opregistry.NewExec(opregistry.Serial{}, 0), norm.ResidualAddArgs{A: a, B: b, Output: out})
	fmt.Println(tensor.Data[float32](out), err)
	// Output: [11 22] <nil>
}
