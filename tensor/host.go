package tensor

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/primus-fl/primus/device"
)

// Readable reports whether the content of t can be copied to the host and from there.
func (t *Tensor) Readable() bool {
	_, ok := t.copier()
	return ok || t.OnHost()
}

func (t *Tensor) copier() (device.Copier, bool) { return device.As[device.Copier](t.storage.backend) }

// ToHost returns t if it lies in host memory, else a tensor of the same shape and strides in Go
// memory with the content of t. Work that is queued on the device is finished first. It returns an
// error when the memory of t cannot be copied. That of a tensor of Known is not to be changed.
func (t *Tensor) ToHost() (*Tensor, error) {
	if t.OnHost() {
		return t, nil
	}
	if t.known != nil {
		return t.known, nil
	}
	c, ok := t.copier()
	if !ok {
		return nil, t.notOnHost("ToHost")
	}
	twin := t.goTwin()
	if t.elems == 0 {
		return twin, nil
	}
	if err := c.CopyOut(twin.raw(), t.Pointer(), device.DefaultStream); err != nil {
		return nil, fmt.Errorf("tensor: copy %v to the host: %w", t, err)
	}
	return twin, nil
}

// goTwin returns a tensor like t in Go memory, without its content.
func (t *Tensor) goTwin() *Tensor {
	size := 0
	if t.elems > 0 {
		size = t.span() * t.dtype.Size()
	}
	words := make([]uint64, (size+7)/8)
	st := &Storage{base: unsafe.Pointer(unsafe.SliceData(words)), size: size, device: device.Device{Type: device.TypeCPU}, place: device.PlaceHost}
	twin := *t
	twin.storage, twin.offset, twin.known = st, 0, nil
	twin.shape, twin.strides = slices.Clone(t.shape), slices.Clone(t.strides)
	return &twin
}

// Known returns a view of a contiguous tensor on a device whose elements are known: reading the
// view, but not a view of it, does not ask the device. Until the view is used no more, the caller
// changes neither the elements nor t. Of a tensor in host memory Known returns the tensor itself.
func Known[T Element](t *Tensor, elements []T) (*Tensor, error) {
	if t.OnHost() {
		return t, nil
	}
	host, err := FromSlice(elements, t.shape...)
	if err != nil {
		return nil, err
	}
	if !t.contig || t.dtype != host.dtype {
		return nil, &Error{Func: "Known", Got: t.String(), Want: fmt.Sprintf("a contiguous tensor of %v", host.dtype)}
	}
	view := t.view(t.shape, t.strides, t.offset)
	view.known = host
	return view, nil
}

// raw returns the bytes of t, gaps between its elements included.
func (t *Tensor) raw() []byte {
	return unsafe.Slice((*byte)(t.Pointer()), t.span()*t.dtype.Size())
}

// update changes a tensor on a device: change writes the elements of a tensor like it in host
// memory. Bytes in gaps between the elements keep their content. Errors name the function fn.
func (t *Tensor) update(fn string, change func(host *Tensor) error) error {
	c, ok := t.copier()
	if !ok {
		return t.notOnHost(fn)
	}
	if t.elems == 0 {
		return nil
	}
	var host *Tensor
	if t.contig {
		host = t.goTwin()
	} else {
		var err error
		if host, err = t.ToHost(); err != nil {
			return err
		}
	}
	if err := change(host); err != nil {
		return err
	}
	return t.copyIn(c, host)
}

// copyIn copies the bytes of a tensor like t in host memory to t.
func (t *Tensor) copyIn(c device.Copier, host *Tensor) error {
	if err := c.CopyIn(t.Pointer(), host.raw(), device.DefaultStream); err != nil {
		return fmt.Errorf("tensor: copy to %v: %w", t, err)
	}
	return nil
}

// copyAcross is CopyFrom of tensors of which at least one does not lie in host memory.
func (t *Tensor) copyAcross(src *Tensor) error {
	for _, x := range []*Tensor{t, src} {
		if !x.Readable() {
			return x.notOnHost("CopyFrom")
		}
	}
	plain := t.contig && src.contig && t.dtype == src.dtype
	c, onDevice := t.copier()
	switch {
	case t.OnHost() && plain:
		c, _ := src.copier()
		if err := c.CopyOut(t.raw(), src.Pointer(), device.DefaultStream); err != nil {
			return fmt.Errorf("tensor: copy %v to the host: %w", src, err)
		}
		return nil
	case t.OnHost():
		host, err := src.ToHost()
		if err != nil {
			return err
		}
		return t.CopyFrom(host)
	case onDevice && src.OnHost() && plain:
		return t.copyIn(c, src)
	case onDevice && plain && t.storage.backend == src.storage.backend && t.Place() == src.Place():
		if err := c.CopyOn(t.Pointer(), src.Pointer(), uint64(t.elems*t.dtype.Size()), device.DefaultStream); err != nil {
			return fmt.Errorf("tensor: copy %v to %v: %w", src, t, err)
		}
		return nil
	}
	host, err := src.ToHost()
	if err != nil {
		return err
	}
	return t.update("CopyFrom", func(to *Tensor) error { return to.CopyFrom(host) })
}

// Read returns the elements of t as Data does: without a copy from host memory, else copied from
// the device after the work that is queued there. The caller does not change them.
func Read[T Element](t *Tensor) ([]T, error) {
	host, err := t.ToHost()
	if err != nil {
		return nil, err
	}
	return Data[T](host), nil
}

// ReadLater queues that the elements of t are read as they are after the work that is queued on the
// device now, and returns; wait returns them as Read does. From host memory, and where the backend
// is no device.LateReader, they are read at once.
func ReadLater[T Element](t *Tensor) (wait func() ([]T, error), err error) {
	r, ok := device.As[device.LateReader](t.storage.backend)
	if !ok || t.OnHost() || t.elems == 0 {
		elements, err := Read[T](t)
		return func() ([]T, error) { return elements, nil }, err
	}
	later, err := r.ReadLater(t.Pointer(), uint64(t.span()*t.dtype.Size()), device.DefaultStream)
	if err != nil {
		return nil, fmt.Errorf("tensor: copy %v to the host: %w", t, err)
	}
	return func() ([]T, error) {
		content, err := later()
		if err != nil {
			return nil, fmt.Errorf("tensor: copy %v to the host: %w", t, err)
		}
		twin := t.goTwin()
		copy(twin.raw(), content)
		return Data[T](twin), nil
	}, nil
}

// Fill calls fill with the elements of a contiguous tensor, to set all of them. On a device they
// are copied there when fill has returned; what fill gets then has zeros.
func Fill[T Element](t *Tensor, fill func(elements []T)) error {
	if t.OnHost() {
		fill(Data[T](t))
		return nil
	}
	return t.update("Fill", func(host *Tensor) error {
		fill(Data[T](host))
		return nil
	})
}

// Edit calls edit with the elements of t, as Data returns them, to change them. On a device they
// are copied to the host before and back when edit has returned.
func Edit[T Element](t *Tensor, edit func(elements []T)) error {
	host, err := t.ToHost()
	if err != nil {
		return err
	}
	edit(Data[T](host))
	if host == t || t.elems == 0 {
		return nil
	}
	c, _ := t.copier()
	return t.copyIn(c, host)
}
