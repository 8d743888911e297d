package opencltest

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/opencl"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

// Backend returns a backend that is closed at the end of the test. The test is skipped on a machine
// without an OpenCL device.
func Backend(t testing.TB) *opencl.Backend {
	b := opencl.New(opencl.Options{})
	if err := b.Usable(); err != nil {
		t.Skipf("there is no OpenCL device: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

// Conform runs a conformance kit on impls that serve operands on an OpenCL device. The test is
// skipped on a machine without one.
func Conform(t *testing.T, kit opstest.Kit, impls []opregistry.Impl, oracle opregistry.Source, opts ...opstest.Option) {
	b := Backend(t)
	kit.RunAll(t, OnDevice(b, opregistry.Source{Name: "opencl", Impls: impls}), oracle, opts...)
}

// OnDevice returns the source with impls that take operands in host memory and run on the current
// device of b.
func OnDevice(b *opencl.Backend, s opregistry.Source) opregistry.Source {
	s.Impls = slices.Clone(s.Impls)
	for i := range s.Impls {
		impl := &s.Impls[i]
		impl.Support.Devices = nil
		impl.Run = onDevice(b, reflect.ValueOf(impl.Run)).Interface()
	}
	return s
}

// onDevice returns a function of the same type as run that moves its operands.
func onDevice(b *opencl.Backend, run reflect.Value) reflect.Value {
	return reflect.MakeFunc(run.Type(), func(in []reflect.Value) []reflect.Value {
		args := reflect.New(in[1].Type()).Elem()
		args.Set(in[1])
		m := mirrors{backend: b, of: make(map[*tensor.Storage]*mirror)}
		defer m.release()
		m.replace(args)
		if m.err == nil {
			result := run.Call([]reflect.Value{in[0], args})
			m.err, _ = result[0].Interface().(error)
		}
		m.copyBack()
		out := reflect.Zero(run.Type().Out(0))
		if m.err != nil {
			out = reflect.ValueOf(&m.err).Elem()
		}
		return []reflect.Value{out}
	})
}

// mirrors are the device's copies of the storages of a call.
type mirrors struct {
	backend *opencl.Backend
	of      map[*tensor.Storage]*mirror
	err     error
}

// mirror is a whole storage on the device.
type mirror struct {
	host   []byte
	device *tensor.Tensor
}

var tensorType = reflect.TypeFor[*tensor.Tensor]()

// replace replaces the tensors in a value by tensors on the device. Slices are copied.
func (m *mirrors) replace(v reflect.Value) {
	switch {
	case v.Type() == tensorType:
		if !v.IsNil() && v.CanSet() {
			v.Set(reflect.ValueOf(m.tensor(v.Interface().(*tensor.Tensor))))
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				m.replace(v.Field(i))
			}
		}
	case v.Kind() == reflect.Slice && !v.IsNil() && v.CanSet():
		list := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(list, v)
		for i := range list.Len() {
			m.replace(list.Index(i))
		}
		v.Set(list)
	}
}

// tensor returns the same view of the device's copy of the storage.
func (m *mirrors) tensor(t *tensor.Tensor) *tensor.Tensor {
	if m.err != nil {
		return t
	}
	one := m.of[t.Storage()]
	if one == nil {
		if one = m.mirror(t); one == nil {
			return t
		}
	}
	if one.device.DType() != t.DType() {
		m.err = fmt.Errorf("one storage has elements of %v and %v", one.device.DType(), t.DType())
		return t
	}
	view, err := one.device.AsStrided(t.Shape(), t.Strides(), t.Offset())
	if err != nil {
		m.err = err
		return t
	}
	return view
}

// mirror copies the storage of a tensor to the device.
func (m *mirrors) mirror(t *tensor.Tensor) *mirror {
	size := t.DType().Size()
	onDevice, err := tensor.New(m.backend, t.DType(), t.Storage().Size()/size)
	if err != nil {
		m.err = err
		return nil
	}
	one := &mirror{device: onDevice}
	m.of[t.Storage()] = one
	if t.NumElements() > 0 {
		one.host = unsafe.Slice((*byte)(unsafe.Add(t.Pointer(), -t.Offset()*size)), t.Storage().Size())
		m.err = m.backend.CopyIn(onDevice.Pointer(), one.host, device.DefaultStream)
	}
	return one
}

// copyBack copies all storages to the host.
func (m *mirrors) copyBack() {
	for _, one := range m.of {
		if len(one.host) == 0 {
			continue
		}
		host := slices.Clone(one.host)
		if err := m.backend.CopyOut(host, one.device.Pointer(), device.DefaultStream); err != nil && m.err == nil {
			m.err = err
		}
		if !slices.Equal(host, one.host) {
			copy(one.host, host)
		}
	}
}

func (m *mirrors) release() {
	for _, one := range m.of {
		if err := one.device.Release(); err != nil {
			panic(fmt.Sprintf("BUG: %v", err))
		}
	}
}
