package pysource

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var assignment = regexp.MustCompile(`^([A-Za-z_]\w*)\s*(?::[^=]*)?=\s*(?:[0-9][0-9_]*|'[^'\\]*'|"[^"\\]*")\s*(?:#.*)?$`)

// Constants returns the names at the top level of a Python module that a line of its own sets to an integer or to a text
// without escapes, with the texts of these. Of two assignments the later one counts.
func Constants(source string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(source) {
		line = strings.TrimRight(line, "\r\n")
		m := assignment.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		_, value, _ := strings.Cut(line, "=")
		value = strings.TrimSpace(value)
		if quote := value[:1]; quote == `'` || quote == `"` {
			value, _, _ = strings.Cut(value[1:], quote)
		} else {
			value, _, _ = strings.Cut(value, "#")
			value = strings.ReplaceAll(strings.TrimSpace(value), "_", "")
		}
		found[m[1]] = value
	}
	return found
}

// maxFile is the most that is read of a file: those that state versions are short.
const maxFile = 1 << 20

// PackageVersion returns the version that the first of some modules states which is there: __version__, or MAJOR.MINOR.PATCH
// followed by PRE_RELEASE. The modules are paths below each of the directories, which are searched in order.
func PackageVersion(dirs []string, modules ...string) (string, error) {
	var tried []string
	for _, dir := range dirs {
		for _, module := range modules {
			file := filepath.Join(dir, filepath.FromSlash(module))
			text, err := os.ReadFile(file)
			if errors.Is(err, os.ErrNotExist) {
				tried = append(tried, file)
				continue
			}
			if err != nil {
				return "", err
			}
			if len(text) > maxFile {
				return "", fmt.Errorf("%s: it has %d bytes, expected a short module", file, len(text))
			}
			c := Constants(string(text))
			if v := c["__version__"]; v != "" {
				return v, nil
			}
			if c["MAJOR"] == "" || c["MINOR"] == "" || c["PATCH"] == "" {
				return "", fmt.Errorf("%s: it states no version: expected __version__ or MAJOR, MINOR and PATCH", file)
			}
			return c["MAJOR"] + "." + c["MINOR"] + "." + c["PATCH"] + c["PRE_RELEASE"], nil
		}
	}
	return "", fmt.Errorf("no version: looked for %s", strings.Join(tried, ", "))
}

// InstalledVersion returns the version of a distribution by its metadata in the first of some directories that has it.
func InstalledVersion(dirs []string, name string) (string, error) {
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
			text, err := os.ReadFile(file)
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
	return "", fmt.Errorf("no version: distribution %q is not installed in %s", name, strings.Join(dirs, ", "))
}

// SitePackages returns where Python would find distributions, by the variables PYTHONPATH and VIRTUAL_ENV.
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
