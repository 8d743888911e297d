package experiments

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Files returns the files that a pattern matches, in order: *, ? and [a-z] stand for parts of a
// name, and ** for any number of directories. A name without these, and that of a file, is itself.
func Files(pattern string) ([]string, error) {
	if _, err := os.Stat(pattern); err == nil || !strings.ContainsAny(pattern, "*?[") {
		return []string{pattern}, nil
	}
	words := strings.Split(filepath.ToSlash(pattern), "/")
	first := 0
	for !strings.ContainsAny(words[first], "*?[") {
		first++
	}
	base := filepath.FromSlash(strings.Join(words[:first], "/"))
	switch {
	case base == "" && first > 0:
		base = string(filepath.Separator)
	case base == "":
		base = "."
	}
	for _, word := range words[first:] {
		if _, err := filepath.Match(word, ""); err != nil {
			return nil, fmt.Errorf("pattern %q: %w", pattern, err)
		}
	}
	var files []string
	err := filepath.WalkDir(base, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		below, err := filepath.Rel(base, path)
		if err == nil && matches(words[first:], strings.Split(filepath.ToSlash(below), "/")) {
			files = append(files, path)
		}
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("pattern %q matches no file", pattern)
	}
	return files, err
}

// matches reports whether the words of a pattern match the parts of a path.
func matches(words, parts []string) bool {
	if len(words) == 0 {
		return len(parts) == 0
	}
	if words[0] == "**" {
		return matches(words[1:], parts) || len(parts) > 0 && matches(words, parts[1:])
	}
	if len(parts) == 0 {
		return false
	}
	ok, err := filepath.Match(words[0], parts[0])
	return err == nil && ok && matches(words[1:], parts[1:])
}
