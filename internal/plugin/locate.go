package plugin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// libraryName matches the names of shared libraries.
var libraryName = regexp.MustCompile(`\.(so(\.[0-9]+)*|dylib)$`)

// Locate returns the absolute path of the library that a user names. A name with a slash is a path;
// any other name is looked up in dirs, in order. The system's own directories are not searched.
func Locate(name string, dirs []string) (string, error) {
	switch {
	case strings.ContainsRune(name, filepath.Separator):
		return filepath.Abs(name)
	case !libraryName.MatchString(name):
		return "", fmt.Errorf("plugin %q: want a shared library such as libacme_ops.so: %s", name, notALibrary(name, dirs))
	case len(dirs) == 0:
		return "", fmt.Errorf("plugin %q: given a name and no directory to look in: give a path such as ./%s, or the directory with --plugin-dir or PRIMUS_PLUGIN_PATH", name, name)
	}
	if path, ok := find(name, dirs); ok {
		return filepath.Abs(path)
	}
	return "", fmt.Errorf("plugin %q: no such file in %s", name, strings.Join(dirs, ", "))
}

func find(name string, dirs []string) (string, bool) {
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			return path, true
		}
	}
	return "", false
}

// notALibrary says what to do about a name that cannot be that of a library.
func notALibrary(name string, dirs []string) string {
	for _, guess := range []string{"lib" + name + ".so", name + ".so"} {
		if _, ok := find(guess, dirs); ok {
			return fmt.Sprintf("did you mean %q?", guess)
		}
	}
	return "modules of Python cannot be loaded; build the ops as a library in C, C++ or Rust, or compile a Go module in with primus plugins build"
}
