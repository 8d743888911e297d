//go:build linux

package plugin

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
)

// elfWriter makes small shared libraries for this machine.
type elfWriter struct {
	needed           []string
	rpath, runpath   string
	machine          elf.Machine
	extraSegments    []elf.Prog64
	withoutStrings   bool
	withoutDynEnding bool
}

// Where an elfWriter puts things; every address is an offset in the file.
const (
	elfHeaderSize = 64
	progSize      = 56
	dynamicAt     = 0x400
	stringsAt     = 0x800
	elfSize       = 0x1000
)

func (w elfWriter) bytes() []byte {
	strings, dynamic := []byte{0}, []elf.Dyn64{}
	add := func(tag elf.DynTag, text string) {
		dynamic = append(dynamic, elf.Dyn64{Tag: int64(tag), Val: uint64(len(strings))})
		strings = append(append(strings, text...), 0)
	}
	for _, name := range w.needed {
		add(elf.DT_NEEDED, name)
	}
	if w.rpath != "" {
		add(elf.DT_RPATH, w.rpath)
	}
	if w.runpath != "" {
		add(elf.DT_RUNPATH, w.runpath)
	}
	if !w.withoutStrings {
		dynamic = append(dynamic, elf.Dyn64{Tag: int64(elf.DT_STRTAB), Val: stringsAt})
	}
	if !w.withoutDynEnding {
		dynamic = append(dynamic, elf.Dyn64{})
	}
	segments := append([]elf.Prog64{
		{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R), Filesz: elfSize, Memsz: elfSize, Align: 0x1000},
		{Type: uint32(elf.PT_DYNAMIC), Flags: uint32(elf.PF_R), Off: dynamicAt, Vaddr: dynamicAt, Filesz: uint64(16 * len(dynamic)), Memsz: uint64(16 * len(dynamic)), Align: 8},
	}, w.extraSegments...)
	machine := w.machine
	if machine == 0 {
		machine = elf.EM_X86_64
	}
	header := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_DYN), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT),
		Phoff: elfHeaderSize, Ehsize: elfHeaderSize, Phentsize: progSize, Phnum: uint16(len(segments)), Shentsize: 64,
	}
	file := make([]byte, elfSize)
	put := func(at int, v any) {
		var b bytes.Buffer
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			panic(err) // of a type of package elf
		}
		copy(file[at:], b.Bytes())
	}
	put(0, header)
	put(elfHeaderSize, segments)
	put(dynamicAt, dynamic)
	copy(file[stringsAt:], strings)
	return file
}

func openBytes(t testing.TB, file []byte) *elf.File {
	t.Helper()
	lib, err := elf.NewFile(bytes.NewReader(file))
	require.NoError(t, err)
	return lib
}

func TestReadLinkage(t *testing.T) {
	t.Parallel()
	l, err := readLinkage(openBytes(t, elfWriter{needed: []string{"liba.so", "libb.so.1"}, rpath: "/a:$ORIGIN", runpath: "/c"}.bytes()))
	require.NoError(t, err)
	assert.Equal(t, linkage{needed: []string{"liba.so", "libb.so.1"}, rpath: []string{"/a", "$ORIGIN"}, runpath: []string{"/c"}}, l)

	for name, tt := range map[string]struct {
		file []byte
		want string
	}{
		"no strings": {elfWriter{needed: []string{"liba.so"}, withoutStrings: true}.bytes(), "has no table of strings"},
		"no end":     {elfWriter{needed: []string{"liba.so"}, withoutDynEnding: true}.bytes(), "has no end within"},
	} {
		_, err := readLinkage(openBytes(t, tt.file))
		assert.ErrorContains(t, err, tt.want, name)
	}
	cut := elfWriter{needed: []string{"liba.so"}}.bytes()
	binary.LittleEndian.PutUint64(cut[dynamicAt+8:], elfSize)
	_, err = readLinkage(openBytes(t, cut))
	assert.ErrorContains(t, err, "which no segment has")
}

// Whatever the bytes, looking at a file ends with a verdict, and what it needs was read within
// bounds.
func FuzzInspect(f *testing.F) {
	for _, w := range []elfWriter{
		{}, {needed: []string{"libc.so.6"}}, {needed: []string{"liba.so", "libb.so"}, runpath: "$ORIGIN/lib:/opt/lib"},
		{needed: []string{"/opt/liba.so"}, rpath: "${ORIGIN}:relative"}, {machine: elf.EM_S390},
		{extraSegments: []elf.Prog64{{Type: uint32(elf.PT_LOAD), Off: 1 << 40, Filesz: 1}}},
		{extraSegments: []elf.Prog64{{Type: uint32(elf.PT_NOTE), Off: ^uint64(0), Filesz: 2}}},
		{needed: []string{strings.Repeat("x", 300)}}, {needed: []string{"liba.so"}, withoutStrings: true}, {needed: []string{"liba.so"}, withoutDynEnding: true},
	} {
		file := w.bytes()
		f.Add(file)
		f.Add(file[:len(file)/2])
	}
	f.Add([]byte(elf.ELFMAG))
	f.Add([]byte("import torch\n"))
	path := filepath.Join(f.TempDir(), "lib.so")
	f.Fuzz(func(t *testing.T, data []byte) {
		defer primustest.Measured(t, len(data))()
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
		require.NoError(t, err)
		defer file.Close()
		_, err = file.Write(data)
		require.NoError(t, err)
		if checkFormat(file, int64(len(data))) != nil {
			return
		}
		lib, err := elf.NewFile(bytes.NewReader(data))
		require.NoError(t, err)
		l, err := readLinkage(lib)
		if err != nil {
			assert.Less(t, len(err.Error()), 1024)
			return
		}
		for _, name := range l.needed {
			assert.LessOrEqual(t, len(name), maxLibraryName)
			assert.Contains(t, string(data), name)
		}
	})
}
