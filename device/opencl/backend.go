package opencl

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/internal/driver"
	"github.com/primus-fl/primus/device/opencl/internal/cl"
)

// Options are what a Backend may be told.
type Options struct {
	// Files are the libraries to try in place of the system's OpenCL loader, in order.
	Files []string

	// Cache is the folder that keeps built programs and what was measured; "" means that nothing is
	// kept. Programs of PoCL, which has a cache of its own, are not kept.
	Cache string

	// PoisonScratch fills Scratch with NaNs, so that a kernel that reads what no other has written
	// computes NaNs, too. It is for tests.
	PoisonScratch bool
}

// Backend is the OpenCL device backend. Use New to make one; it is safe for concurrent use.
type Backend struct {
	options Options
	threads driver.Devices
	open    func() (*system, error) // loads the library once
	handles *handles
	index   atomic.Pointer[[]*chunk] // by ascending address; written with pools' locks held
	indexMu sync.Mutex
	closed  atomic.Bool
	opened  atomic.Pointer[system]

	cachePoCL bool // for tests
}

// system is the library with its devices.
type system struct {
	lib     *cl.Library
	devices []*Device
}

var (
	_ device.Backend     = (*Backend)(nil)
	_ device.StreamQueue = (*Backend)(nil)
	_ device.Copier      = (*Backend)(nil)
	_ device.Timer       = (*Backend)(nil)
	_ device.Numbered    = (*Backend)(nil)
	_ device.Meter       = (*Backend)(nil)
	_ device.Describer   = (*Backend)(nil)
	_ device.Profiler    = (*Backend)(nil)
)

// New returns an OpenCL backend. It touches no library; the first use of the backend loads the
// library and lists the devices. Close releases everything that the backend holds by then.
func New(options Options) *Backend {
	b := &Backend{options: options, handles: newHandles()}
	b.index.Store(&[]*chunk{})
	b.open = sync.OnceValues(b.load)
	return b
}

// Name returns "OPENCL".
func (b *Backend) Name() string { return "OPENCL" }

// Usable returns nil when there is a device that can be used. The error says what was looked for
// and what to do.
func (b *Backend) Usable() error {
	if b.closed.Load() {
		return fmt.Errorf("%w: make another with opencl.New", device.ErrClosed)
	}
	_, err := b.open()
	return err
}

// Devices returns what is known of each device, in the order of their indexes.
func (b *Backend) Devices() ([]Info, error) {
	sys, err := b.open()
	if err != nil {
		return nil, err
	}
	infos := make([]Info, len(sys.devices))
	for i, d := range sys.devices {
		infos[i] = d.info
	}
	return infos, nil
}

// Describe says what the device with this index is.
func (b *Backend) Describe(index int) (device.Description, error) {
	d, err := b.Of(index)
	if err != nil {
		return device.Description{}, err
	}
	i := d.info
	return device.Description{Name: i.Name, Driver: i.Platform + " " + i.Driver, Memory: i.Memory}, nil
}

// Library returns the file of the OpenCL library; "" when none could be opened.
func (b *Backend) Library() string {
	if sys, err := b.open(); err == nil {
		return sys.lib.Path()
	}
	return ""
}

const howToInstall = `install a driver, for example "apt install pocl-opencl-icd" for the CPU, intel-opencl-icd, mesa-opencl-icd, or that of the GPU's vendor; "clinfo -l" lists what a machine has`

// load opens the library and lists the devices.
func (b *Backend) load() (*system, error) {
	lib, err := cl.Open(b.options.Files...)
	if err != nil {
		return nil, fmt.Errorf("opencl: %w; %s", err, howToInstall)
	}
	sys := &system{lib: lib}
	platforms, err := listPlatforms(lib)
	if err != nil {
		return nil, err
	}
	var described []string
	for _, p := range platforms {
		found, err := p.devices(lib)
		if err != nil {
			return nil, err
		}
		described = append(described, fmt.Sprintf("%s, %s", p.name, p.version))
		for _, id := range found {
			d, err := newDevice(b, lib, p, id, len(sys.devices))
			if err != nil {
				return nil, err
			}
			sys.devices = append(sys.devices, d)
		}
	}
	if len(sys.devices) == 0 {
		return nil, fmt.Errorf("opencl: %s lists no device; platforms: %s; %s", lib.Path(), listOrNone(described), howToInstall)
	}
	b.opened.Store(sys)
	return sys, nil
}

func listOrNone(items []string) string {
	if len(items) == 0 {
		return "none"
	}
	return strings.Join(items, "; ")
}

// SetDevice makes the device with this index current for the calling OS thread. The caller must
// call runtime.LockOSThread first.
func (b *Backend) SetDevice(index int) error {
	if _, err := b.Of(index); err != nil {
		return fmt.Errorf("set device %d: %w", index, err)
	}
	b.threads.Set(index)
	return nil
}

// SetDefaultDevice makes the device with this index current for all OS threads that have not called
// SetDevice.
func (b *Backend) SetDefaultDevice(index int) error {
	if _, err := b.Of(index); err != nil {
		return fmt.Errorf("set default device %d: %w", index, err)
	}
	b.threads.SetDefault(index)
	return nil
}

// DeviceID returns the index of the calling OS thread's current device. The error is always nil.
func (b *Backend) DeviceID() (int, error) { return b.threads.Get(), nil }

// Device returns the calling OS thread's current device. The error is always nil.
func (b *Backend) Device() (device.Device, error) {
	return device.Device{Type: device.TypeOpenCL, Index: b.threads.Get()}, nil
}

// Of returns the device with this index.
func (b *Backend) Of(index int) (*Device, error) {
	sys, err := b.open()
	if err != nil {
		return nil, err
	}
	if index < 0 || index >= len(sys.devices) {
		if len(sys.devices) == 1 {
			return nil, fmt.Errorf("opencl: there is no device %d: want 0, which is %s", index, sys.devices[0].info.Name)
		}
		var names []string
		for i, d := range sys.devices {
			names = append(names, fmt.Sprintf("%d is %s", i, d.info.Name))
		}
		return nil, fmt.Errorf("opencl: there is no device %d: want an index from 0 to %d: %s", index, len(sys.devices)-1, strings.Join(names, ", "))
	}
	return sys.devices[index], nil
}

// current returns the calling thread's current device.
func (b *Backend) current() (*Device, error) { return b.Of(b.threads.Get()) }

// Close waits for the work in all streams and releases streams, events, programs and memory. It
// returns the failures of work that no SyncEvent has returned, and an error when blocks are still
// allocated. Such blocks may still be freed; every other use of the backend is an error afterwards.
func (b *Backend) Close() error {
	if b.closed.Swap(true) {
		return nil
	}
	sys := b.opened.Load()
	if sys == nil {
		return nil
	}
	errs := []error{b.handles.close()}
	for _, d := range sys.devices {
		errs = append(errs, d.close())
	}
	return errors.Join(errs...)
}

// check returns an error once the backend is closed; the words say what was to be done.
func (b *Backend) check(words ...string) error {
	if b.closed.Load() {
		return fmt.Errorf("%w: %s", device.ErrClosed, strings.Join(words, " "))
	}
	return nil
}
