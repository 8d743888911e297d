package plugin

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/primus-fl/primus/internal/durable"
)

// File is a library that was inspected without being loaded.
type File struct {
	Path   string `json:"path"`   // with links resolved
	SHA256 string `json:"sha256"` // in lower-case hexadecimal
	// Dependencies are the libraries outside of the system's directories that the system's loader
	// loads with this one, directly or indirectly, in the order in which they were found, and at last
	// the mapping file of functions for TVM FFI.
	Dependencies []File `json:"dependencies,omitempty"`
}

// maxBytes is more than any library has, and few enough to read.
const maxBytes = 8 << 30

// Inspect checks a library before any of its code runs. It refuses a library that users other than
// the owner may change, through the file, its directory or a directory on the path to it; a link
// that leaves its directory; a file that is not a shared library for this machine or that is
// truncated; and a library written in Go, because a process can have one Go runtime only. The
// libraries that it depends on and the directories that are searched for them must meet the same
// conditions, except those in the system's own directories.
//
// Inspect sees the files as they are now: their owner can still replace them before they are
// loaded.
func Inspect(path string) (File, error) {
	f, err := inspect(path)
	if err == nil {
		f.Dependencies, err = dependencies(f.Path)
	}
	if err == nil {
		var mapping *File
		if mapping, err = inspectMapping(f.Path); mapping != nil {
			f.Dependencies = append(f.Dependencies, *mapping)
		}
	}
	if err != nil {
		return File{}, fmt.Errorf("plugin %s: %w", path, err)
	}
	return f, nil
}

func inspect(path string) (File, error) {
	given, err := filepath.Abs(path)
	if err != nil {
		return File{}, err
	}
	if path, err = withoutLinks(given); err != nil {
		return File{}, err
	}
	file, info, err := openRegular(path)
	if err != nil {
		return File{}, err
	}
	defer file.Close()
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return File{}, plainError(err)
	}
	if err := errors.Join(private("it", info), private("its directory "+filepath.Dir(path), dir)); err != nil {
		return File{}, err
	}
	if err := privatePath(given); err != nil {
		return File{}, err
	}
	if err := checkFormat(file, info.Size()); err != nil {
		return File{}, err
	}
	return examine(path, file, info)
}

// Examine is Inspect without the check of who may change the library. If the file can be read but
// is not a library, Examine returns it together with the error.
func Examine(path string) (File, error) {
	file, info, err := openRegular(path)
	if err != nil {
		return File{}, fmt.Errorf("plugin %s: %w", path, err)
	}
	defer file.Close()
	f, err := examine(path, file, info)
	if err != nil {
		return f, fmt.Errorf("plugin %s: %w", path, err)
	}
	return f, nil
}

// examine reads the whole file only if its headers and its size are valid, because a sparse file of
// any size is easy to create.
func examine(path string, file *os.File, info fs.FileInfo) (File, error) {
	if info.Size() > maxBytes {
		return File{}, fmt.Errorf("it has %d bytes, want at most %d", info.Size(), int64(maxBytes))
	}
	format := checkFormat(file, info.Size())
	f, err := checksum(path, file, info.Size())
	if err != nil {
		return f, err
	}
	return f, format
}

// checksum reads a whole file.
func checksum(path string, file *os.File, size int64) (File, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(file, 0, size)); err != nil {
		return File{}, plainError(err)
	}
	return File{Path: path, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}

// openRegular opens a file unless it is a directory, a pipe or a device.
func openRegular(path string) (*os.File, fs.FileInfo, error) {
	file, err := durable.OpenRegular(path)
	if irregular, ok := errors.AsType[*durable.IrregularError](err); ok {
		return nil, nil, fmt.Errorf("it is %s, want a shared library", irregular.Kind())
	}
	if err != nil {
		return nil, nil, plainError(err)
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, nil, plainError(err)
	}
	return file, info, nil
}

// withoutLinks follows links to a library as long as they stay in its directory.
func withoutLinks(path string) (string, error) {
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", plainError(err)
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", plainError(err)
	}
	if filepath.Dir(target) != dir {
		return "", fmt.Errorf("it is a link to %s, which leaves its directory; name that file itself", target)
	}
	return target, nil
}

// plainError returns an error of the file system without its path.
func plainError(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// machines lists the machine numbers of ELF files by GOARCH.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// checkFormat refuses a file that is not a shared library for this machine. It knows ELF only;
// other formats are left to the system's loader.
func checkFormat(file *os.File, size int64) error {
	if runtime.GOOS != "linux" {
		return checkGo(file)
	}
	if size == 0 {
		return errors.New("it is empty, want a shared library")
	}
	begin := make([]byte, min(size, 16))
	if _, err := io.ReadFull(io.NewSectionReader(file, 0, size), begin); err != nil {
		return plainError(err)
	}
	if !bytes.HasPrefix(begin, []byte(elf.ELFMAG)) {
		return fmt.Errorf("it is not an ELF shared library: it begins with %q", begin)
	}
	lib, err := elf.NewFile(file)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("it is truncated: its headers describe more than its %d bytes", size)
	}
	if err != nil {
		return fmt.Errorf("its ELF header is damaged: %w", err)
	}
	if err := checkGo(file); err != nil {
		return err
	}
	if want := machines[runtime.GOARCH]; lib.Machine != want || lib.Class != elf.ELFCLASS64 {
		return fmt.Errorf("it is built for %v %v, this program runs on %v %v", lib.Machine, lib.Class, want, elf.ELFCLASS64)
	}
	if lib.Type != elf.ET_DYN {
		return fmt.Errorf("it is an ELF file of type %v, want a shared library (%v)", lib.Type, elf.ET_DYN)
	}
	if lib.Section(".go.buildinfo") != nil {
		return goLibrary("")
	}
	for _, p := range lib.Progs {
		if end := p.Off + p.Filesz; end > uint64(size) || end < p.Off {
			return fmt.Errorf("it is truncated: it has %d bytes, and its headers describe %d", size, end)
		}
	}
	return nil
}

func checkGo(file *os.File) error {
	if info, err := buildinfo.Read(file); err == nil {
		return goLibrary(fmt.Sprintf(" (%s, %s)", info.Path, info.GoVersion))
	}
	return nil
}

func goLibrary(which string) error {
	return fmt.Errorf("it is written in Go%s, and a process can have one Go runtime only: compile its module in with primus plugins build --with MODULE", which)
}
