package check

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/plugin"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/opstest/ondevice"
)

// devicesOf returns the types of devices whose memory an impl serves.
func devicesOf(impl opregistry.Impl) []device.Type {
	if impl.Support.Devices == nil {
		return []device.Type{device.TypeCPU}
	}
	return impl.Support.Devices
}

// deviceOf returns the type of device that a name has, of those that the impl serves.
func (n name) deviceOf(impl opregistry.Impl) device.Type {
	for _, t := range devicesOf(impl) {
		if t.String() == n.Device {
			return t
		}
	}
	return device.TypeCPU
}

// finder returns the backend of devices of a type, or why there is none.
type finder func(device.Type) (device.Backend, error)

// backend returns the backend of a type, nil for the CPU.
func (f finder) backend(t device.Type) (device.Backend, error) {
	switch {
	case t == device.TypeCPU:
		return nil, nil
	case f == nil:
		return nil, fmt.Errorf("this process has no devices of type %v", t)
	}
	return f(t)
}

// on returns the impls of a source that serve operands on devices of a type, with operands in host
// memory; b is nil for the CPU. stray hears of writes next to operands on a device.
func on(t device.Type, b device.Backend, src opregistry.Source, stray func(error)) opregistry.Source {
	src.Impls = slices.DeleteFunc(slices.Clone(src.Impls), func(i opregistry.Impl) bool { return !slices.Contains(devicesOf(i), t) })
	if b == nil {
		return src
	}
	return ondevice.Source(b, src, stray)
}

// Try returns the function that tries ops in a probe, in a few cases of the conformance kit on each
// device that an op serves and that find finds.
func Try(find func(device.Type) (device.Backend, error)) plugin.Tryer {
	return func(src opregistry.Source, impl opregistry.Impl, progress func(string)) (found plugin.Trial, err error) {
		for _, t := range devicesOf(impl) {
			b, err := finder(find).backend(t)
			if err != nil {
				continue // an op that no device serves is not available, and is not tried
			}
			var step string
			here := on(t, b, src, func(err error) { found.Stray = cmp.Or(found.Stray, fmt.Sprintf("case %s: %v", step, err)) })
			subject, _ := implOf(here, name{Op: impl.Op.Name(), ID: impl.ID})
			show := opstest.WithProgress(func(name string) {
				if t != device.TypeCPU {
					name += " on " + t.String()
				}
				step = name
				progress(name)
			})
			one, err := opscases.All().Try(SubjectOf(here, subject), show)
			if err != nil {
				return found, err
			}
			found.Served, found.Declined = found.Served+one.Served, found.Declined+one.Declined
			found.Failure, found.Stray = cmp.Or(found.Failure, one.Failure), cmp.Or(found.Stray, one.Stray)
		}
		return found, nil
	}
}
