package plugin

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"strings"
)

// linkage is what a library tells the system's loader about the libraries that it needs.
type linkage struct {
	needed  []string
	rpath   []string // directories, as they are written
	runpath []string
}

// Bounds of a dynamic section.
const (
	maxDynamic     = 4096
	maxLibraryName = 4096
)

// readLinkage finds the dynamic section through the program headers, as the loader does; the loader
// ignores section headers. A library without a dynamic section needs no others.
func readLinkage(lib *elf.File) (l linkage, err error) {
	entries, err := dynamicEntries(lib)
	if err != nil {
		return l, err
	}
	names, has := uint64(0), false
	for _, e := range entries {
		if e.tag == elf.DT_STRTAB {
			names, has = e.value, true
		}
	}
	for _, e := range entries {
		if e.tag != elf.DT_NEEDED && e.tag != elf.DT_RPATH && e.tag != elf.DT_RUNPATH {
			continue
		}
		if !has {
			return l, errors.New("its dynamic section has no table of strings")
		}
		text, err := stringAt(lib, names+e.value)
		if err != nil {
			return l, fmt.Errorf("entry %v of its dynamic section: %w", e.tag, err)
		}
		switch e.tag {
		case elf.DT_NEEDED:
			l.needed = append(l.needed, text)
		case elf.DT_RPATH:
			l.rpath = strings.Split(text, ":")
		default:
			l.runpath = strings.Split(text, ":")
		}
	}
	return l, nil
}

type dynamicEntry struct {
	tag   elf.DynTag
	value uint64
}

func dynamicEntries(lib *elf.File) ([]dynamicEntry, error) {
	for _, p := range lib.Progs {
		if p.Type != elf.PT_DYNAMIC {
			continue
		}
		// The loader reads the mapped address, which may be at another place in the file.
		table, err := bytesAt(lib, p.Vaddr, min(p.Filesz, 16*maxDynamic))
		if err != nil {
			return nil, fmt.Errorf("its dynamic section: %w", err)
		}
		var entries []dynamicEntry
		for ; len(table) >= 16; table = table[16:] {
			e := dynamicEntry{elf.DynTag(lib.ByteOrder.Uint64(table)), lib.ByteOrder.Uint64(table[8:])}
			if e.tag == elf.DT_NULL {
				return entries, nil
			}
			entries = append(entries, e)
		}
		return nil, fmt.Errorf("its dynamic section has no end within %d entries", maxDynamic)
	}
	return nil, nil
}

// bytesAt returns n bytes of the file that are mapped to an address.
func bytesAt(lib *elf.File, address, n uint64) ([]byte, error) {
	for _, p := range lib.Progs {
		if p.Type != elf.PT_LOAD || address < p.Vaddr || address-p.Vaddr > p.Filesz {
			continue
		}
		at := address - p.Vaddr
		if n > p.Filesz-at {
			n = p.Filesz - at
		}
		b := make([]byte, n)
		if _, err := io.ReadFull(io.NewSectionReader(p, int64(at), int64(n)), b); err != nil {
			return nil, fmt.Errorf("cannot be read: %w", err)
		}
		return b, nil
	}
	return nil, fmt.Errorf("lies at address %#x, which no segment has", address)
}

// stringAt returns the string that is mapped to an address.
func stringAt(lib *elf.File, address uint64) (string, error) {
	b, err := bytesAt(lib, address, maxLibraryName)
	if err != nil {
		return "", err
	}
	end := bytes.IndexByte(b, 0)
	if end < 0 {
		return "", fmt.Errorf("has no end within %d bytes", maxLibraryName)
	}
	return string(b[:end]), nil
}
