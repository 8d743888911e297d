package device_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
)

// probe is a backend of which only the name and Usable are used.
type probe struct {
	device.Backend
	name   string
	usable func() error
}

func (p *probe) Name() string { return p.name }

func (p *probe) Usable() error {
	if p.usable == nil {
		return nil
	}
	return p.usable()
}

func ready(name string) *probe { return &probe{name: name} }

func broken(name, reason string) *probe {
	return &probe{name: name, usable: func() error { return errors.New(reason) }}
}

func panicking(name string, value any) *probe {
	return &probe{name: name, usable: func() error { panic(value) }}
}

// registryOf returns a registry with the backends under their names.
func registryOf(t *testing.T, backends ...*probe) *device.Registry {
	t.Helper()
	reg := device.NewRegistry()
	for _, b := range backends {
		require.NoError(t, reg.Register(b.name, b))
	}
	return reg
}

func TestRegisterNormalisesNames(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, give, want string }{
		{"upper case", "GPU", "GPU"},
		{"lower case", "gpu", "GPU"},
		{"space around", "\t my_Chip2 \n", "MY_CHIP2"},
		{"one letter", "x", "X"},
		{"trailing underscore", "A_", "A_"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			reg, b := device.NewRegistry(), ready(tt.want)
			require.NoError(t, reg.Register(tt.give, b))
			assert.Equal(t, []string{tt.want}, reg.Names())
			for _, name := range []string{tt.give, tt.want} {
				got, err := reg.Get(name)
				require.NoError(t, err)
				assert.Same(t, b, got)
			}
		})
	}
}

func TestRegisterErrors(t *testing.T) {
	t.Parallel()
	const invalid = `device: invalid backend name %q: want a letter followed by letters, digits or underscores`
	tests := []struct {
		name    string
		give    string
		backend device.Backend
		wantErr error
		want    string
	}{
		{"empty", "", ready("X"), device.ErrInvalidName, fmt.Sprintf(invalid, "")},
		{"blank", " \t", ready("X"), device.ErrInvalidName, fmt.Sprintf(invalid, " \t")},
		{"digit first", "2GPU", ready("X"), device.ErrInvalidName, fmt.Sprintf(invalid, "2GPU")},
		{"underscore first", "_GPU", ready("X"), device.ErrInvalidName, fmt.Sprintf(invalid, "_GPU")},
		{"dash", "MY-GPU", ready("X"), device.ErrInvalidName, fmt.Sprintf(invalid, "MY-GPU")},
		{"space within", "MY GPU", ready("X"), device.ErrInvalidName, fmt.Sprintf(invalid, "MY GPU")},
		{"letter with ascii upper case", "ſpu", ready("X"), device.ErrInvalidName, fmt.Sprintf(invalid, "ſpu")},
		{"nil", "x", nil, nil, "device: register X: the backend is nil; pass one made by its package's constructor"},
		{"nil pointer", "x", (*probe)(nil), nil, "device: register X: the backend is nil; pass one made by its package's constructor"},
		{"duplicate", " cpu", ready("CPU"), device.ErrDuplicate,
			"device: backend is already registered: CPU is a *device_test.probe and cannot become a *device_test.probe; choose another name"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			first := ready("CPU")
			reg := registryOf(t, first)
			err := reg.Register(tt.give, tt.backend)
			require.EqualError(t, err, tt.want)
			if tt.wantErr != nil {
				assert.ErrorIs(t, err, tt.wantErr)
			}
			assert.Equal(t, []device.Backend{first}, reg.Backends(), "an error must leave the registry as it was")
		})
	}
}

func TestGetErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		backends []*probe
		give     string
		want     string
	}{
		{"empty registry", nil, "GPU", `device: no such backend: "GPU"; registered: none`},
		{"far name", []*probe{ready("CPU"), ready("ASCEND")}, "TPU_V5", `device: no such backend: "TPU_V5"; registered: ASCEND, CPU`},
		{"one letter off", []*probe{ready("CPU"), ready("GPU")}, "gpv", `device: no such backend: "gpv"; registered: CPU, GPU; did you mean "GPU"?`},
		{"swapped letters", []*probe{ready("CPU"), ready("GPU")}, "GUP", `device: no such backend: "GUP"; registered: CPU, GPU; did you mean "GPU"?`},
		{"tie goes to the first", []*probe{ready("GPU"), ready("CPU")}, "XPU", `device: no such backend: "XPU"; registered: CPU, GPU; did you mean "CPU"?`},
		{"long name", []*probe{ready("MY_BACKEND")}, "my-bakcend", `device: no such backend: "my-bakcend"; registered: MY_BACKEND; did you mean "MY_BACKEND"?`},
		{"empty name", []*probe{ready("CPU")}, "", `device: no such backend: ""; registered: CPU`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := registryOf(t, tt.backends...).Get(tt.give)
			require.EqualError(t, err, tt.want)
			assert.ErrorIs(t, err, device.ErrNotFound)
		})
	}
}

// placed is a backend with a device of a type.
type placed struct {
	*probe
	kind device.Type
}

func (p placed) Device() (device.Device, error) {
	if p.kind == device.TypeUnspecified {
		return device.Device{}, errors.New("no current device")
	}
	return device.Device{Type: p.kind}, nil
}

func TestOfType(t *testing.T) {
	t.Parallel()
	reg := device.NewRegistry()
	cpu, gone := placed{ready("CPU"), device.TypeCPU}, placed{broken("CHIP", "no driver"), device.TypeCUDA}
	for _, b := range []placed{cpu, gone, {ready("EMPTY"), device.TypeUnspecified}} {
		require.NoError(t, reg.Register(b.name, b))
	}
	found, err := reg.OfType(device.TypeCPU)
	require.NoError(t, err)
	assert.Equal(t, cpu, found)
	_, err = reg.OfType(device.TypeCUDA)
	require.EqualError(t, err, "no driver")
	_, err = reg.OfType(device.TypeOpenCL)
	require.ErrorIs(t, err, device.ErrNotFound)
	require.EqualError(t, err, "device: no such backend: none has devices of the type opencl; registered: CHIP, CPU, EMPTY")
}

func TestListsAreSortedCopies(t *testing.T) {
	t.Parallel()
	gpu, cpu, ascend := ready("GPU"), ready("CPU"), ready("ASCEND")
	reg := registryOf(t, gpu, cpu, ascend)

	reg.Names()[0] = "changed"
	reg.Backends()[0] = nil

	assert.Equal(t, []string{"ASCEND", "CPU", "GPU"}, reg.Names())
	assert.Equal(t, []device.Backend{ascend, cpu, gpu}, reg.Backends())
}

func TestRegistryHammer(t *testing.T) {
	t.Parallel()
	const goroutines, names = 8, 50
	reg := device.NewRegistry()
	start := make(chan struct{})
	won := make([]int, goroutines)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			<-start
			for i := range names {
				name := fmt.Sprintf("B%02d", i)
				switch err := reg.Register(name, ready(name)); {
				case err == nil:
					won[g]++
				case !errors.Is(err, device.ErrDuplicate):
					assert.NoError(t, err)
				}
				b, err := reg.Get(name)
				if assert.NoError(t, err) {
					assert.Equal(t, name, b.Name())
				}
				assert.GreaterOrEqual(t, len(reg.Backends()), i+1)
			}
		})
	}
	close(start)
	wg.Wait()

	total := 0
	for _, n := range won {
		total += n
	}
	assert.Equal(t, names, total, "each name must be registered exactly once")
	assert.Len(t, reg.Names(), names)
}
