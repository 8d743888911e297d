package pysource

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

var codingCookie = regexp.MustCompile(`^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)`)

// checkEncoding refuses what is not UTF-8: bytes that are not, and files that declare something
// else.
func checkEncoding(f *File) error {
	rest := f.Text
	for range 2 {
		line, after, _ := strings.Cut(rest, "\n")
		if m := codingCookie.FindStringSubmatch(line); m != nil {
			switch name := strings.ReplaceAll(strings.ToLower(m[1]), "_", "-"); name {
			case "utf-8", "utf8", "utf-8-sig", "ascii", "us-ascii", "u8":
			default:
				return f.fault(0, "the file declares the encoding %q, expected utf-8", name)
			}
		}
		if blank := strings.TrimLeft(line, " \t\f"); blank != "" && blank[0] != '#' {
			break
		}
		rest = after
	}
	for i := 0; i < len(f.Text); {
		r, size := utf8.DecodeRuneInString(f.Text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return f.fault(i, "invalid byte %#x, expected UTF-8", f.Text[i])
		case r == 0:
			return f.fault(i, "source code cannot contain null bytes")
		}
		i += size
	}
	return nil
}
