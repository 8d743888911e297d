package plugin

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// private refuses a file or directory that users other than the owner may write to.
func private(what string, info fs.FileInfo) error {
	if runtime.GOOS == "windows" || !shared(info) {
		return nil
	}
	return fmt.Errorf("%s is writable by its group or others (mode %v), who could decide what this program runs: chmod go-w", what, info.Mode())
}

// shared reports whether users other than the owner may write to a file or directory.
func shared(info fs.FileInfo) bool { return info.Mode().Perm()&0o022 != 0 }

// privatePath refuses a path to a library if another user may put another file in its place: only
// the owner may write to the directories on the path, including those that links lead through. A
// sticky directory, in which only the owner of an entry can replace it, is accepted if the next
// element belongs to root or to this user.
func privatePath(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	separator := string(filepath.Separator)
	dir, rest := separator, strings.Split(filepath.Clean(path), separator)
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			dir = filepath.Dir(dir) // which has no links
			continue
		}
		next := filepath.Join(dir, name)
		info, err := os.Lstat(next)
		if err != nil {
			return plainError(err)
		}
		if err := privateDir(dir, next, info); err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			dir = next
			continue
		}
		target, err := os.Readlink(next)
		if err != nil {
			return plainError(err)
		}
		if links++; links > maxLinks {
			return fmt.Errorf("its path has more than %d links", maxLinks)
		}
		if filepath.IsAbs(target) {
			dir = separator
		}
		rest = append(strings.Split(target, separator), rest...)
	}
	return nil
}

// maxLinks is more than any system follows.
const maxLinks = 255

// privateDir refuses a directory on the path to a library in which another user may replace the
// next element.
func privateDir(dir, next string, nextInfo fs.FileInfo) error {
	info, err := os.Stat(dir)
	if err != nil {
		return plainError(err)
	}
	switch {
	case !shared(info):
		return nil
	case info.Mode()&fs.ModeSticky == 0:
		return fmt.Errorf("the directory %s on its path is writable by its group or others (mode %v), who could put another library in its place: chmod go-w %s, or move the library", dir, info.Mode(), dir)
	case !trustedOwner(nextInfo):
		return fmt.Errorf("the directory %s on its path is writable by its group or others (mode %v), and %s in it belongs neither to root nor to this user: move the library to a directory of your own", dir, info.Mode(), next)
	}
	return nil
}
