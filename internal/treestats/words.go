package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

var (
	fence      = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	generated  = regexp.MustCompile(`(?s)<!-- generated: .*?<!-- end -->`)
	linkTarget = regexp.MustCompile(`\]\([^)]*\)`)
)

// words counts the words that somebody wrote on a page in Markdown: those outside fenced blocks,
// the targets of links, and what stands between <!-- generated: by what --> and <!-- end -->.
func words(page string) (n int) {
	page = fence.ReplaceAllString(page, "")
	page = generated.ReplaceAllString(page, "")
	for word := range strings.FieldsSeq(linkTarget.ReplaceAllString(page, "]")) {
		if strings.IndexFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) >= 0 {
			n++
		}
	}
	return n
}

// documentation returns the number of hand-written words of all pages that git has, without the
// change log and the inputs of tests, and prints that of each to out.
func documentation(dir string, out io.Writer) (total int, err error) {
	list, err := command(dir, "git", "ls-files", "-z", "*.md")
	if err != nil {
		return 0, err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		if name == "CHANGELOG.md" || strings.Contains(name, "testdata/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return 0, err
		}
		n := words(string(text))
		if _, err := fmt.Fprintf(out, "%s\t%d\n", name, n); err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}
