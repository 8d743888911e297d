package projection

import (
	"fmt"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/suggest"
)

// Device is what a data sheet says about an accelerator. Rates are per second; a rate of 0 is not
// known.
type Device struct {
	Name   string  `json:"name"`
	Memory float64 `json:"memory"` // bytes
	BF16   float64 `json:"bf16_flops"`
	FP8    float64 `json:"fp8_flops"`
	HBM    float64 `json:"memory_bandwidth"`
	Link   float64 `json:"link_bandwidth"` // to the other devices of a node, in one direction
}

const (
	gib  = 1 << 30
	tera = 1e12
	giga = 1e9
)

// Devices returns the known accelerators. Rates are those of data sheets, without sparsity.
func Devices() []Device {
	return []Device{
		{"A100", 80 * gib, 312 * tera, 0, 2.04 * tera, 300 * giga},
		{"B200", 180 * gib, 2250 * tera, 4500 * tera, 8 * tera, 900 * giga},
		{"H100", 80 * gib, 989 * tera, 1979 * tera, 3.35 * tera, 450 * giga},
		{"H200", 140 * gib, 989 * tera, 1979 * tera, 4.8 * tera, 450 * giga},
		{"MI250X", 64 * gib, 191.5 * tera, 0, 1.6 * tera, 100 * giga},
		{"MI300X", 192 * gib, 1307.4 * tera, 2614.9 * tera, 5.3 * tera, 448 * giga},
		{"MI325X", 256 * gib, 1307.4 * tera, 2614.9 * tera, 6 * tera, 448 * giga},
		{"MI350X", 288 * gib, 2309.6 * tera, 4614 * tera, 8 * tera, 538 * giga},
		{"MI355X", 288 * gib, 2516.6 * tera, 5033.2 * tera, 8 * tera, 538 * giga},
	}
}

// DeviceNames returns the names that [FindDevice] knows.
func DeviceNames() []string {
	var names []string
	for _, d := range Devices() {
		names = append(names, d.Name)
	}
	return names
}

// FindDevice returns the accelerator of a name, in upper or lower case.
func FindDevice(name string) (Device, error) {
	all := Devices()
	i := slices.IndexFunc(all, func(d Device) bool { return strings.EqualFold(d.Name, name) })
	if i < 0 {
		return Device{}, fmt.Errorf("projection: device %q is not known%s: want one of %s", name, suggest.Hint(strings.ToUpper(name), DeviceNames()), strings.Join(DeviceNames(), ", "))
	}
	return all[i], nil
}
