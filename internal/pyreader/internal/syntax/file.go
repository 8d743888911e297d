// Package syntax reads Python source files without Python.
//
// Parse makes the syntax tree of a file. The grammar is that of Python 3.13, which reads the files
// of older versions, too. Each Node has a Span of byte offsets into File.Text, in which line ends
// are \n; File.Line turns an offset into a line, File.Source a span into its text.
//
// A file that is not Python gives a *Error with the line and the column. The parser is more lenient
// than Python: it does not make the checks of the compiler, such as for a return outside of a
// function. No input makes it panic, and the memory needed is proportional to the length of the
// input. A File is immutable once it is parsed.
package syntax

import (
	"fmt"
	"regexp"
	"sort"
	"strings"
	"unicode/utf8"
)

// Span is a range of bytes of a file, the first and the one after the last.
type Span struct{ Start, End int }

// Comment is a comment with its mark.
type Comment struct {
	Span
	Text string
}

// Error says where a file is not Python.
type Error struct {
	File         string
	Line, Column int // from 1
	Message      string
}

// Error names the place.
func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

// File is the text of a module, and what was read from it.
type File struct {
	Name     string
	Text     string // with \n as the only line end and without a byte order mark
	Body     []*Node
	Comments []Comment

	lines []int        // where lines begin
	look  func() error // whether reading may go on, nil if it may
	paces int
}

// ended is what reading panics with when it may not go on.
type ended struct{ err error }

// pace asks now and then whether reading may go on.
func (f *File) pace() {
	if f.paces++; f.look == nil || f.paces%1024 != 0 {
		return
	}
	if err := f.look(); err != nil {
		panic(ended{err})
	}
}

// newFile normalises the text of a file.
func newFile(name string, source []byte) *File {
	text := strings.TrimPrefix(string(source), "\ufeff")
	if strings.Contains(text, "\r") {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	}
	f := &File{Name: name, Text: text, lines: []int{0}}
	for i := range len(text) {
		if text[i] == '\n' {
			f.lines = append(f.lines, i+1)
		}
	}
	return f
}

// Line returns the number of the line that has a byte, from 1.
func (f *File) Line(offset int) int { return sort.SearchInts(f.lines, offset+1) }

// Position returns the line of a byte, from 1, and the bytes before it in that line.
func (f *File) Position(offset int) (line, column int) {
	line = f.Line(offset)
	return line, offset - f.lines[line-1]
}

// Source returns the text of a node.
func (f *File) Source(n *Node) string { return f.Text[n.Start:n.End] }

// Words returns the text of a node on one line.
func (f *File) Words(n *Node) string { return strings.Join(strings.Fields(f.Source(n)), " ") }

// fail ends the parsing of the file: Parse returns the *Error.
func (f *File) fail(offset int, format string, args ...any) {
	line, column := f.Position(min(offset, len(f.Text)))
	panic(&Error{File: f.Name, Line: line, Column: column + 1, Message: fmt.Sprintf(format, args...)})
}

var codingCookie = regexp.MustCompile(`^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)`)

// checkEncoding refuses what is not UTF-8: bytes that are not, and files that declare something
// else.
func (f *File) checkEncoding() {
	rest := f.Text
	for range 2 {
		line, after, _ := strings.Cut(rest, "\n")
		if m := codingCookie.FindStringSubmatch(line); m != nil {
			switch name := strings.ReplaceAll(strings.ToLower(m[1]), "_", "-"); name {
			case "utf-8", "utf8", "utf-8-sig", "ascii", "us-ascii", "u8":
			default:
				f.fail(0, "given the encoding %q, want utf-8", name)
			}
		}
		if code := strings.TrimLeft(line, " \t\f"); code != "" && code[0] != '#' {
			break
		}
		rest = after
	}
	for i, r := range f.Text {
		if r == 0 {
			f.fail(i, "source code cannot contain null bytes")
		}
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(f.Text[i:]); size == 1 {
				f.fail(i, "given the byte %#x, want UTF-8", f.Text[i])
			}
		}
	}
}
