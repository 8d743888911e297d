package python

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/pyreader"
)

// maxFile bounds the length of files that are read. Files that state versions are short.
const maxFile = 1 << 20

// OfPackage returns the version that the first existing module states. The modules are paths below
// each of the directories, which are searched in order.
func OfPackage(dirs []string, modules ...string) (string, error) {
	var tried []string
	for _, dir := range dirs {
		for _, module := range modules {
			file := filepath.Join(dir, filepath.FromSlash(module))
			text, err := durable.ReadRegular(file, maxFile)
			if errors.Is(err, fs.ErrNotExist) {
				tried = append(tried, file)
				continue
			}
			if err != nil {
				return "", err
			}
			return pyreader.Version(file, text)
		}
	}
	return "", fmt.Errorf("no version: looked for %s", strings.Join(tried, ", "))
}

// OfInstalled returns the version of a distribution by its metadata in the first of some
// directories that has it.
func OfInstalled(dirs []string, name string) (string, error) {
	for _, dir := range dirs {
		var files []string
		for _, pattern := range []string{name + "-*.dist-info/METADATA", name + "*.egg-info/PKG-INFO"} {
			matches, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
			if err != nil {
				return "", err
			}
			files = append(files, matches...)
		}
		slices.Sort(files)
		for _, file := range files {
			text, err := durable.ReadRegular(file, maxFile)
			if err != nil {
				return "", err
			}
			for line := range strings.Lines(string(text)) {
				if v, ok := strings.CutPrefix(line, "Version:"); ok {
					return strings.TrimSpace(v), nil
				}
			}
		}
	}
	if len(dirs) == 0 {
		return "", fmt.Errorf("no version of distribution %q: PYTHONPATH and VIRTUAL_ENV name no folder to look for it in", name)
	}
	return "", fmt.Errorf("no version of distribution %q: it is not installed in %s", name, strings.Join(dirs, ", "))
}

// SitePackages returns where Python would find distributions, by the variables PYTHONPATH and
// VIRTUAL_ENV.
func SitePackages(lookup func(string) (string, bool)) []string {
	var dirs []string
	if path, ok := lookup("PYTHONPATH"); ok {
		dirs = append(dirs, slices.DeleteFunc(filepath.SplitList(path), func(dir string) bool { return dir == "" })...)
	}
	if env, ok := lookup("VIRTUAL_ENV"); ok {
		if found, err := filepath.Glob(filepath.Join(env, "lib", "python3*", "site-packages")); err == nil {
			dirs = append(dirs, found...)
		}
	}
	return dirs
}
