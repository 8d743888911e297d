package opencl

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"unsafe"

	"github.com/primus-fl/primus/device/opencl/internal/cl"
	"github.com/primus-fl/primus/internal/durable"
)

// cacheFormat begins each file of the cache. A checksum of the rest and the driver's binary follow.
var cacheFormat = []byte("primus opencl 1\n")

// pocl is a platform that keeps what it compiles. It compiles a kernel for the work-groups of a
// launch, and a binary of a program makes it compile all kernels for any work-group besides: the
// products were ready after 89 s with a binary to write, 40 s with one to read, and 44 s without.
const pocl = "Portable Computing Language"

// cacheFile returns the file of a program that was built by this driver for this device; "" without
// a cache.
func (d *Device) cacheFile(source, flags string) string {
	if d.backend.options.Cache == "" || d.info.Platform == pocl && !d.backend.cachePoCL {
		return ""
	}
	return filepath.Join(d.backend.options.Cache, d.hash(flags, source)+".bin")
}

// hash returns a name for the device with its driver and for some texts.
func (d *Device) hash(texts ...string) string {
	h := sha256.New()
	driver := []string{d.info.Platform, d.info.PlatformVersion, d.info.Driver, d.info.Vendor, d.info.Name, d.info.Version}
	for _, part := range append(driver, texts...) {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// maxProgram bounds a compiled program.
const maxProgram = 1 << 30

// cached returns a program from a file of the cache; false when there is none, or one that is
// damaged or that the driver does not take.
func (d *Device) cached(file, flags string) (uintptr, bool) {
	if file == "" {
		return 0, false
	}
	content, err := durable.ReadRegular(file, maxProgram)
	if err != nil {
		return 0, false
	}
	rest, ok := bytes.CutPrefix(content, cacheFormat)
	if !ok || len(rest) <= sha256.Size {
		return 0, false
	}
	code := rest[sha256.Size:]
	if sum := sha256.Sum256(code); !bytes.Equal(sum[:], rest[:sha256.Size]) {
		return 0, false
	}
	ids, lengths, list, status := []uintptr{d.id}, []uintptr{uintptr(len(code))}, []*byte{&code[0]}, []int32{0}
	handle, err := d.lib.Create(cl.CreateProgramWithBinary, d.context, 1, uintptr(unsafe.Pointer(&ids[0])), uintptr(unsafe.Pointer(&lengths[0])),
		uintptr(unsafe.Pointer(&list[0])), uintptr(unsafe.Pointer(&status[0])))
	if err != nil {
		return 0, false
	}
	if status[0] != 0 || d.compile(handle, flags) != nil {
		_ = d.lib.Call(cl.ReleaseProgram, handle)
		return 0, false
	}
	return handle, true
}

// keep writes a program to a file of the cache. A cache that cannot be written costs time only, so
// that is no error.
func (d *Device) keep(file string, program uintptr) {
	if file == "" {
		return
	}
	sizes, err := d.lib.Info(cl.GetProgramInfo, program, cl.ProgramBinarySizes)
	if err != nil || len(sizes) < 8 || binary.NativeEndian.Uint64(sizes) == 0 {
		return
	}
	code := make([]byte, binary.NativeEndian.Uint64(sizes))
	list := []*byte{&code[0]}
	err = d.lib.Call(cl.GetProgramInfo, program, cl.ProgramBinaries, unsafe.Sizeof(list[0]), uintptr(unsafe.Pointer(&list[0])), 0)
	runtime.KeepAlive(list)
	if err != nil || os.MkdirAll(filepath.Dir(file), 0o700) != nil {
		return
	}
	sum := sha256.Sum256(code)
	_ = durable.WriteFile(file, func(w io.Writer) error {
		_, err := w.Write(bytes.Join([][]byte{cacheFormat, sum[:], code}, nil))
		return err
	})
}
