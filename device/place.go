package device

import "fmt"

// Place is where tensors lie, in one word that is compared in each call of an op: a device, or host
// memory, whose nodes are one place.
type Place uint32

// The places that are not a device.
const (
	PlaceMixed Place = 0 // of several tensors that do not lie in one place
	PlaceHost  Place = Place(TypeCPU)
)

// Place returns the place of memory on the device.
func (d Device) Place() Place {
	if d.Type == TypeCPU {
		return PlaceHost
	}
	return Place(uint32(d.Index)<<16 | uint32(uint16(d.Type)))
}

// Type returns the type of the device, TypeUnspecified for PlaceMixed.
func (p Place) Type() Type { return Type(int16(p)) }

// String returns the place in the form "opencl:0", "host" or "several devices".
func (p Place) String() string {
	switch p {
	case PlaceMixed:
		return "several devices"
	case PlaceHost:
		return "host"
	default:
		return fmt.Sprint(Device{Type: p.Type(), Index: int(p >> 16)})
	}
}
