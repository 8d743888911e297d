package check

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/opstest/ondevice"
	"github.com/primus-fl/primus/vendors/plugin"
)

// devicesOf returns the types of devices whose memory an impl serves.
func devicesOf(impl opregistry.Impl) []device.Type {
	if impl.Support.Devices == nil {
		return []device.Type{device.TypeCPU}
	}
	return impl.Support.Devices
}

// on returns the impls of a source that serve operands on the device of this type, with operands in
// host memory; "" is the CPU. stray hears of writes next to operands on a device.
func on(wanted string, src opregistry.Source, find func(device.Type) (device.Backend, error), stray func(error)) (opregistry.Source, error) {
	if wanted == "" {
		wanted = device.TypeCPU.String()
	}
	var on device.Type
	src.Impls = slices.DeleteFunc(slices.Clone(src.Impls), func(i opregistry.Impl) bool {
		at := slices.IndexFunc(devicesOf(i), func(t device.Type) bool { return t.String() == wanted })
		if at >= 0 {
			on = devicesOf(i)[at]
		}
		return at < 0
	})
	if on == device.TypeCPU || on == device.TypeUnspecified {
		return src, nil
	}
	if find == nil {
		return src, fmt.Errorf("this process has no devices of type %v", on)
	}
	b, err := find(on)
	if err != nil {
		return src, err
	}
	return ondevice.Source(b, src, stray), nil
}

// Try returns the function that tries ops in a probe, in a few cases of the conformance kit on each
// device that an op serves and that find finds.
func Try(find func(device.Type) (device.Backend, error)) plugin.Tryer {
	return func(src opregistry.Source, impl opregistry.Impl, progress func(string)) (found plugin.Trial, err error) {
		for _, t := range devicesOf(impl) {
			var step string
			stray := func(err error) { found.Stray = cmp.Or(found.Stray, fmt.Sprintf("case %s: %v", step, err)) }
			here, err := on(t.String(), src, find, stray)
			if err != nil {
				continue // an op that no device serves is not available, and is not tried
			}
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
