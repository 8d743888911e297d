package plugin

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/primus-fl/primus/internal/durable"
)

// maxDependencies is more than any plugin has.
const maxDependencies = 512

// dependencies inspects the libraries that a library needs and returns those that do not belong to
// the system. It knows ELF only.
func dependencies(path string) ([]File, error) {
	if runtime.GOOS != "linux" {
		return nil, nil
	}
	s := &dependencySearch{seen: map[string]bool{path: true}}
	if err := s.follow(path, nil); err != nil {
		return nil, err
	}
	return s.found, nil
}

// dependencySearch looks for libraries in the directories in which the system's loader would.
type dependencySearch struct {
	seen  map[string]bool // files, without links
	found []File
}

// follow inspects what a library needs. above are the RPATHs of the libraries that need this one,
// the nearest first.
func (s *dependencySearch) follow(path string, above []string) error {
	file, err := durable.OpenRegular(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lib, err := elf.NewFile(file)
	if err != nil {
		return err
	}
	l, err := readLinkage(lib)
	if err != nil {
		return err
	}
	if len(l.runpath) > 0 {
		l.rpath = nil // the loader forgets it
	}
	rpath, err := expand("RPATH", l.rpath, path)
	if err != nil {
		return err
	}
	above = append(rpath, above...)
	dirs := []string{}
	if len(l.runpath) == 0 {
		dirs = append(dirs, above...)
	}
	for _, dir := range filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")) {
		if dir, err = filepath.Abs(dir); err != nil {
			return err
		}
		dirs = append(dirs, dir)
	}
	runpath, err := expand("RUNPATH", l.runpath, path)
	if err != nil {
		return err
	}
	for _, name := range l.needed {
		if err := s.need(name, path, append(dirs, runpath...), above); err != nil {
			return fmt.Errorf("it needs %s: %w", name, err)
		}
	}
	return nil
}

// need finds a library and inspects it and every directory that is searched for it.
func (s *dependencySearch) need(name, by string, dirs, above []string) error {
	if strings.ContainsRune(name, filepath.Separator) {
		path, err := expandOne(name, by)
		if err != nil {
			return err
		}
		return s.judge(path, above)
	}
	for _, dir := range dirs {
		if err := privatePlace(dir); err != nil {
			return err
		}
		path := filepath.Join(dir, name)
		switch _, err := os.Stat(path); {
		case err == nil:
			return s.judge(path, above)
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
			return plainError(err)
		}
	}
	return nil // the system's
}

// judge inspects a library and what it needs.
func (s *dependencySearch) judge(path string, above []string) error {
	f, err := inspect(path)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	case s.seen[f.Path]:
		return nil
	case len(s.found) == maxDependencies:
		return fmt.Errorf("the library depends on more than %d others", maxDependencies)
	}
	s.seen[f.Path] = true
	s.found = append(s.found, f)
	return s.follow(f.Path, above)
}

// expand returns the directories of a search path of a library.
func expand(what string, dirs []string, library string) ([]string, error) {
	var all []string
	for _, dir := range dirs {
		expanded, err := expandOne(dir, library)
		if err != nil {
			return nil, fmt.Errorf("its %s: %w", what, err)
		}
		all = append(all, expanded)
	}
	return all, nil
}

// expandOne replaces $ORIGIN, the directory of the library, in a path.
func expandOne(path, library string) (string, error) {
	expanded := path
	for _, origin := range []string{"${ORIGIN}", "$ORIGIN"} {
		expanded = strings.ReplaceAll(expanded, origin, filepath.Dir(library))
	}
	switch {
	case strings.ContainsRune(expanded, '$'):
		return "", fmt.Errorf("given %q, of which only $ORIGIN is understood", path)
	case !filepath.IsAbs(expanded):
		return "", fmt.Errorf("given %q, which is relative to the directory that this program starts in; want $ORIGIN or an absolute path", path)
	}
	return filepath.Clean(expanded), nil
}

// privatePlace refuses a directory into which another user may put a library, including a missing
// one that another user may create.
func privatePlace(dir string) error {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return privateParent(dir)
	}
	if err != nil {
		return plainError(err)
	}
	if !info.IsDir() {
		return nil // in which nothing is found
	}
	if err := private("the directory "+dir+", which is searched for it,", info); err != nil {
		return err
	}
	return privatePath(dir)
}

// privateParent refuses a missing directory that another user may create.
func privateParent(dir string) error {
	parent := filepath.Dir(dir)
	info, err := os.Stat(parent)
	switch {
	case errors.Is(err, fs.ErrNotExist) && parent != dir:
		return privateParent(parent)
	case err != nil:
		return plainError(err)
	case runtime.GOOS != "windows" && shared(info):
		return fmt.Errorf("the directory %s is searched for it and does not exist, and other users may create it, because %s is writable by its group or others (mode %v): create it, or link the library with another search path", dir, parent, info.Mode())
	}
	return privatePath(parent)
}
