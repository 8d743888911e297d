//go:build unix

package plugin_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/plugin"
)

func TestLocate(t *testing.T) {
	t.Parallel()
	one, two := t.TempDir(), t.TempDir()
	for _, file := range []string{filepath.Join(one, "liba.so"), filepath.Join(two, "liba.so"), filepath.Join(two, "libacme_ops.so"), filepath.Join(two, "other.so")} {
		require.NoError(t, os.WriteFile(file, nil, 0o600))
	}
	dirs := []string{one, two}
	here, err := filepath.Abs("libx.so")
	require.NoError(t, err)
	tests := []struct {
		name, give string
		dirs       []string
		want       string
		wantErr    []string
	}{
		{name: "absolute path", give: "/opt/acme/libacme.so", want: "/opt/acme/libacme.so"},
		{name: "relative path", give: "./libx.so", want: here},
		{name: "path of any name", give: "/opt/acme/ops", want: "/opt/acme/ops"},
		{name: "first directory wins", give: "liba.so", dirs: dirs, want: filepath.Join(one, "liba.so")},
		{name: "second directory", give: "libacme_ops.so", dirs: dirs, want: filepath.Join(two, "libacme_ops.so")},
		{name: "missing", give: "libb.so.2", dirs: dirs, wantErr: []string{`plugin "libb.so.2": no such file in `, one + ", " + two}},
		{name: "no directory", give: "libb.so", wantErr: []string{"./libb.so", "--plugin-dir", "PRIMUS_PLUGIN_PATH"}},
		{name: "Python module", give: "my_plugin", dirs: dirs, wantErr: []string{`plugin "my_plugin": want a shared library`, "Python", "plugins build"}},
		{name: "dotted Python module", give: "acme.plugin", dirs: dirs, wantErr: []string{"Python"}},
		{name: "without lib and .so", give: "acme_ops", dirs: dirs, wantErr: []string{`did you mean "libacme_ops.so"?`}},
		{name: "without .so", give: "other", dirs: dirs, wantErr: []string{`did you mean "other.so"?`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := plugin.Locate(tt.give, tt.dirs)
			assert.Equal(t, tt.want, got)
			if tt.wantErr == nil {
				require.NoError(t, err)
			}
			for _, part := range tt.wantErr {
				assert.ErrorContains(t, err, part)
			}
		})
	}
}

func TestInspect(t *testing.T) {
	t.Parallel()
	path := compile(t, "fixture.c")
	library, err := os.ReadFile(path)
	require.NoError(t, err)
	want, err := plugin.Inspect(path)
	require.NoError(t, err)
	assert.Equal(t, path, want.Path)
	assert.Len(t, want.SHA256, 64)
	program, err := os.Executable()
	require.NoError(t, err)
	self, err := os.ReadFile(program)
	require.NoError(t, err)

	tests := []struct {
		name    string
		prepare func(t *testing.T, dir, path string)
		give    string // below dir; "" is lib.so
		want    []string
	}{
		{name: "link within the directory", give: "link.so", prepare: func(t *testing.T, dir, _ string) {
			require.NoError(t, os.Symlink("lib.so", filepath.Join(dir, "link.so")))
		}},
		{name: "linked directory", give: "current/lib.so", prepare: func(t *testing.T, dir, _ string) {
			require.NoError(t, os.Mkdir(filepath.Join(dir, "v1"), 0o755))
			require.NoError(t, os.Rename(filepath.Join(dir, "lib.so"), filepath.Join(dir, "v1", "lib.so")))
			require.NoError(t, os.Symlink("v1", filepath.Join(dir, "current")))
		}},
		{name: "link out of the directory", give: "link.so", want: []string{"it is a link to " + path, "leaves its directory"}, prepare: func(t *testing.T, dir, _ string) {
			require.NoError(t, os.Symlink(path, filepath.Join(dir, "link.so")))
		}},
		{name: "links in a circle", give: "link.so", want: []string{"too many links"}, prepare: func(t *testing.T, dir, _ string) {
			require.NoError(t, os.Symlink("link.so", filepath.Join(dir, "link.so")))
		}},
		{name: "missing", give: "absent.so", want: []string{"absent.so: no such file or directory"}},
		{name: "missing directory", give: "absent/lib.so", want: []string{"no such file or directory"}},
		{name: "directory", give: ".", want: []string{"it is a directory, want a shared library"}},
		{name: "pipe", give: "pipe.so", want: []string{"it is a named pipe, want a shared library"}, prepare: func(t *testing.T, dir, _ string) {
			require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe.so"), 0o600))
		}},
		{name: "file writable by its group", want: []string{"it is writable by its group or others (mode -rwxrwxr-x)", "chmod go-w"}, prepare: chmod(0o775, "lib.so")},
		{name: "file writable by others", want: []string{"it is writable by its group or others"}, prepare: chmod(0o757, "lib.so")},
		{name: "directory writable by its group", want: []string{"its directory /", "is writable by its group or others"}, prepare: chmod(0o770, ".")},
		{name: "directory writable by all, sticky", want: []string{"its directory /", "is writable by its group or others"}, prepare: chmod(0o777|os.ModeSticky, ".")},
		{name: "directory above writable by its group", give: "a/b/c/lib.so", want: []string{"the directory /", "/a on its path is writable by its group or others (mode drwxrwxr-x)", "chmod go-w /", "or move the library"}, prepare: func(t *testing.T, dir, path string) {
			below(t, dir, "a/b/c")
			chmod(0o775, "a")(t, dir, path)
		}},
		{name: "directory above sticky", give: "a/b/c/lib.so", prepare: func(t *testing.T, dir, path string) {
			below(t, dir, "a/b/c")
			chmod(0o777|os.ModeSticky, "a")(t, dir, path)
		}},
		{name: "directory of another in a sticky one", give: "a/b/c/lib.so", want: []string{"/a on its path is writable by its group or others (mode dtrwxrwxrwx)", "/a/b in it belongs neither to root nor to this user"}, prepare: func(t *testing.T, dir, path string) {
			below(t, dir, "a/b/c")
			chmod(0o777|os.ModeSticky, "a")(t, dir, path)
			if err := os.Chown(filepath.Join(dir, "a", "b"), 65534, 65534); err != nil {
				t.Skip("only root gives files away: ", err)
			}
		}},
		{name: "link in a writable directory", give: "a/current/lib.so", want: []string{"/a on its path is writable by its group or others (mode drwxrwxrwx)"}, prepare: func(t *testing.T, dir, path string) {
			below(t, dir, "v1")
			below(t, dir, "a")
			require.NoError(t, os.Symlink("../v1", filepath.Join(dir, "a", "current")))
			chmod(0o777, "a")(t, dir, path)
		}},
		{name: "link to a link through a writable directory", give: "current/lib.so", want: []string{"/a on its path is writable by its group or others"}, prepare: func(t *testing.T, dir, path string) {
			below(t, dir, "v1")
			below(t, dir, "a")
			require.NoError(t, os.Symlink(filepath.Join(dir, "v1"), filepath.Join(dir, "a", "latest")))
			require.NoError(t, os.Symlink("a/latest", filepath.Join(dir, "current")))
			chmod(0o777, "a")(t, dir, path)
		}},
		{name: "empty", want: []string{"it is empty, want a shared library"}, prepare: content("")},
		{name: "text", want: []string{`it is not an ELF shared library: it begins with "import torch\n"`}, prepare: content("import torch\n")},
		{name: "one byte", want: []string{`it begins with "\x7f"`}, prepare: content("\x7f")},
		{name: "nothing after the magic", want: []string{"it is truncated"}, prepare: content("\x7fELF")},
		{name: "garbage after the magic", want: []string{"its ELF header is damaged"}, prepare: content("\x7fELF" + strings.Repeat("\xee", 4096))},
		{name: "truncated", want: []string{"it is truncated"}, prepare: content(string(library[:len(library)*2/3]))},
		{name: "truncated in its headers", want: []string{"it is truncated"}, prepare: content(string(library[:80]))},
		{name: "other processor", want: []string{"it is built for EM_S390 ELFCLASS64, this program runs on"}, prepare: content(patched(library, 18, 22))},
		{name: "truncated after its headers", want: []string{"it is truncated"}, prepare: content(string(withoutSections(library)[:len(library)/4]))},
		{name: "object file", want: []string{"ELF file of type ET_REL"}, prepare: content(patched(library, 16, 1))},
		{name: "Go", want: []string{"it is written in Go (", runtime.Version(), "plugins build --with"}, prepare: content(string(self))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if runtime.GOOS != "linux" && strings.Contains(strings.Join(tt.want, ""), "ELF") {
				t.Skip("libraries are ELF on linux only")
			}
			dir := t.TempDir()
			path := filepath.Join(dir, "lib.so")
			require.NoError(t, os.WriteFile(path, library, 0o700))
			if tt.prepare != nil {
				tt.prepare(t, dir, path)
			}
			if tt.give != "" {
				path = filepath.Join(dir, tt.give)
			}
			got, err := plugin.Inspect(path)
			if tt.want == nil {
				require.NoError(t, err)
				assert.Equal(t, want.SHA256, got.SHA256)
				return
			}
			assert.Empty(t, got)
			assert.ErrorContains(t, err, "plugin "+path+": ")
			for _, part := range tt.want {
				assert.ErrorContains(t, err, part)
			}
		})
	}
}

func chmod(mode os.FileMode, name string) func(*testing.T, string, string) {
	return func(t *testing.T, dir, _ string) { require.NoError(t, os.Chmod(filepath.Join(dir, name), mode)) }
}

// below copies the library of a directory into one below it.
func below(t *testing.T, dir, name string) {
	require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
	require.NoError(t, os.Link(filepath.Join(dir, "lib.so"), filepath.Join(dir, name, "lib.so")))
}

func content(text string) func(*testing.T, string, string) {
	return func(t *testing.T, _, path string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o700)) }
}

// withoutSections returns an ELF file that has no section headers, as some strippers leave it.
func withoutSections(file []byte) []byte {
	file = slices.Clone(file)
	clear(file[0x28:0x30]) // e_shoff
	clear(file[0x3c:0x40]) // e_shnum, e_shstrndx
	return file
}

// patched returns a file with another 16-bit number, little-endian, at an offset.
func patched(file []byte, at int, value byte) string {
	return string(file[:at]) + string([]byte{value, 0}) + string(file[at+2:])
}

// Examine says the same about a file as Inspect, and nothing about who may change it.
func TestExamine(t *testing.T) {
	t.Parallel()
	path := compile(t, "fixture.c")
	library, err := os.ReadFile(path)
	require.NoError(t, err)
	want, err := plugin.Inspect(path)
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o777))
	for name, text := range map[string]string{"lib.so": string(library), "text.so": "import torch\n", "short.so": string(library[:len(library)/3]), "empty.so": ""} {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		got, err := plugin.Examine(file)
		assert.Equal(t, file, got.Path)
		assert.Len(t, got.SHA256, 64)
		if name == "lib.so" {
			require.NoError(t, err)
			assert.Equal(t, want.SHA256, got.SHA256)
			continue
		}
		alone := filepath.Join(t.TempDir(), "lib.so")
		require.NoError(t, os.WriteFile(alone, []byte(text), 0o600))
		_, other := plugin.Inspect(alone)
		require.EqualError(t, err, strings.ReplaceAll(other.Error(), alone, file))
	}
	_, err = plugin.Examine(dir)
	require.EqualError(t, err, "plugin "+dir+": it is a directory, want a shared library")
	_, err = plugin.Examine(filepath.Join(dir, "absent.so"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
