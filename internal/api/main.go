// Command api writes down what the public packages export, so that a change of it is seen.
//
//	go run ./internal/api          rewrite internal/api/exported.txt
//	go run ./internal/api -check   print the difference and fail if there is one
//
// Each line is a constant, variable, function, type, field or method, in the form of the api folder
// of the Go project. The public packages are those of internal/archtest/public.txt.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	listFile = "internal/archtest/public.txt"
	golden   = "internal/api/exported.txt"
)

func main() {
	check := flag.Bool("check", false, "print how the packages differ from "+golden+" instead of rewriting it")
	flag.Parse()
	if err := run(*check, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "api:", err)
		os.Exit(1)
	}
}

func run(check bool, out io.Writer) error {
	root, module, err := moduleRoot()
	if err != nil {
		return err
	}
	list, err := os.ReadFile(filepath.Join(root, listFile))
	if err != nil {
		return err
	}
	lines, err := exported(root, module, entries(string(list)))
	if err != nil {
		return err
	}
	file := filepath.Join(root, golden)
	if !check {
		return os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
	}
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	removed, added := difference(entries(string(old)), lines)
	for _, line := range removed {
		fmt.Fprintln(out, "-", line)
	}
	for _, line := range added {
		fmt.Fprintln(out, "+", line)
	}
	if len(removed)+len(added) > 0 {
		return fmt.Errorf("given packages that export %d lines less and %d more than %s, want the same: run make api, and say in CHANGELOG.md what was removed", len(removed), len(added), golden)
	}
	return nil
}

// entries returns the lines of a file that are neither empty nor comments.
func entries(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, line)
		}
	}
	return all
}

// difference returns the lines that are in only one of two lists.
func difference(old, now []string) (removed, added []string) {
	without := func(all, other []string) []string {
		has := map[string]bool{}
		for _, line := range other {
			has[line] = true
		}
		return slices.DeleteFunc(slices.Clone(all), func(line string) bool { return has[line] })
	}
	return without(old, now), without(now, old)
}
