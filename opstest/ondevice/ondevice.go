// Package ondevice lets the conformance kit and other callers with operands in host memory run
// impls that serve operands in memory of a device. Source wraps the impls of a source: operands are
// copied to the device before a call and back after it.
package ondevice

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// Source returns the source with impls that take operands in host memory and run on the current
// device of b, which must be a device.Copier. Operands are copied to the device before each call
// and back after it, with the memory between rows. A call that writes next to this memory on the
// device is an error, of which stray hears, too, if it is not nil.
func Source(b device.Backend, s opregistry.Source, stray func(error)) opregistry.Source {
	s.Impls = slices.Clone(s.Impls)
	for i := range s.Impls {
		impl := &s.Impls[i]
		impl.Support.Devices = nil
		impl.Run = onDevice(b, reflect.ValueOf(impl.Run), stray).Interface()
	}
	return s
}

// onDevice returns a function of the same type as run that moves its operands.
func onDevice(b device.Backend, run reflect.Value, stray func(error)) reflect.Value {
	return reflect.MakeFunc(run.Type(), func(in []reflect.Value) []reflect.Value {
		args := reflect.New(in[1].Type()).Elem()
		args.Set(in[1])
		m := mirrors{backend: b, stray: stray, of: make(map[*tensor.Storage]*mirror)}
		var ok bool
		if m.copier, ok = device.As[device.Copier](b); !ok {
			m.err = fmt.Errorf("ondevice: the backend %s copies nothing between its memory and that of the host", b.Name())
		}
		defer m.release()
		m.replace(args)
		if m.err == nil {
			result := run.Call([]reflect.Value{in[0], args})
			m.err, _ = result[0].Interface().(error)
		}
		m.copyBack()
		m.release()
		out := reflect.Zero(run.Type().Out(0))
		if m.err != nil {
			out = reflect.ValueOf(&m.err).Elem()
		}
		return []reflect.Value{out}
	})
}

// mirrors are the device's copies of the storages of a call.
type mirrors struct {
	backend device.Backend
	copier  device.Copier
	stray   func(error)
	of      map[*tensor.Storage]*mirror
	err     error
}

// mirror is a whole storage on the device.
type mirror struct {
	host   []byte         // nil before a view with elements was seen
	device *tensor.Tensor // the storage between two bands
}

// Bands lie before and after each storage on the device, to see what is written there.
const (
	bandBytes = 256
	bandByte  = 0xa5
)

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
		size := t.DType().Size()
		onDevice, err := tensor.New(m.backend, t.DType(), (t.Storage().Size()+size-1)/size+2*bandBytes/size)
		if err != nil {
			m.err = err
			return t
		}
		one = &mirror{device: onDevice}
		m.of[t.Storage()] = one
	}
	if one.device.DType() != t.DType() {
		m.err = fmt.Errorf("one storage has elements of %v and %v", one.device.DType(), t.DType())
		return t
	}
	m.copyIn(one, t)
	view, err := one.device.AsStrided(t.Shape(), t.Strides(), t.Offset()+bandBytes/t.DType().Size())
	if err != nil {
		m.err = err
		return t
	}
	return view
}

// copyIn copies the storage of a tensor to the device, once.
func (m *mirrors) copyIn(one *mirror, t *tensor.Tensor) {
	if one.host != nil || t.NumElements() == 0 {
		return
	}
	one.host = unsafe.Slice((*byte)(unsafe.Add(t.Pointer(), -t.Offset()*t.DType().Size())), t.Storage().Size())
	band := bytes.Repeat([]byte{bandByte}, bandBytes)
	if err := m.copier.CopyIn(one.device.Pointer(), slices.Concat(band, one.host, band), device.DefaultStream); err != nil {
		m.err = err
	}
}

// copyBack copies all storages to the host.
func (m *mirrors) copyBack() {
	for _, one := range m.of {
		if one.host == nil {
			continue
		}
		content := make([]byte, len(one.host)+2*bandBytes)
		if err := m.copier.CopyOut(content, one.device.Pointer(), device.DefaultStream); err != nil {
			m.fail(err)
			continue
		}
		before, host, after := content[:bandBytes], content[bandBytes:bandBytes+len(one.host)], content[bandBytes+len(one.host):]
		if !slices.Equal(host, one.host) {
			copy(one.host, host)
		}
		intact := func(band []byte) bool { return bytes.Count(band, []byte{bandByte}) == len(band) }
		if !intact(before) || !intact(after) {
			err := fmt.Errorf("it wrote to memory of the device next to operands of %v, at most %d bytes away", one.device.DType(), bandBytes)
			if m.stray != nil {
				m.stray(err)
			}
			m.fail(err)
		}
	}
}

// fail keeps the first error.
func (m *mirrors) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

// release returns the memory of the device.
func (m *mirrors) release() {
	for _, one := range m.of {
		if err := one.device.Release(); err != nil {
			m.fail(err)
		}
	}
	clear(m.of)
}
