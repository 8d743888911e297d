package pysource

import (
	"fmt"
	"sort"
	"strings"
)

// TokenKind says what a token is.
type TokenKind uint8

// The kinds of tokens.
const (
	EndMarker TokenKind = iota + 1
	NameToken
	NumberToken
	StringToken // with its prefix and quotes, an f-string as a whole
	OpToken
	Newline // the end of a logical line
	Indent
	Dedent
	Comment
	BlankNewline // a line end that ends no logical line
)

var tokenKindNames = [...]string{
	EndMarker: "end of file", NameToken: "name", NumberToken: "number", StringToken: "string", OpToken: "operator", Newline: "end of line",
	Indent: "indent", Dedent: "dedent", Comment: "comment", BlankNewline: "blank line end",
}

// String returns the kind in words.
func (k TokenKind) String() string {
	if int(k) < len(tokenKindNames) && tokenKindNames[k] != "" {
		return tokenKindNames[k]
	}
	return "no token"
}

// Span is a range of bytes of a file, the first and the one after the last.
type Span struct{ Start, End int }

// Range returns the span itself; it makes every type that embeds a Span a Node.
func (s Span) Range() Span { return s }

// Token is a token of a file.
type Token struct {
	Kind TokenKind
	Text string
	Span
}

// SyntaxError says where a file is not Python.
type SyntaxError struct {
	File         string
	Line, Column int // from 1
	Message      string
}

// Error names the place.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

// File is the text of a module, and what was read from it.
type File struct {
	Name     string
	Text     string // with \n as the only line end and without a byte order mark
	Body     []Stmt
	Comments []Token

	lines []int // where lines begin
}

// newFile normalises the text of a file.
func newFile(name string, source []byte) *File {
	text := strings.TrimPrefix(string(source), "\ufeff")
	if strings.Contains(text, "\r") {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	}
	f := &File{Name: name, Text: text, lines: []int{0}}
	for i := 0; i < len(text); i++ {
		if text[i] == '\n' {
			f.lines = append(f.lines, i+1)
		}
	}
	return f
}

// Line returns the number of the line that holds a byte, from 1.
func (f *File) Line(offset int) int {
	return sort.SearchInts(f.lines, offset+1)
}

// Position returns the line of a byte, from 1, and the bytes before it in that line.
func (f *File) Position(offset int) (line, column int) {
	line = f.Line(offset)
	return line, offset - f.lines[line-1]
}

// Source returns the text of a node.
func (f *File) Source(n Node) string {
	s := n.Range()
	return f.Text[s.Start:s.End]
}

func (f *File) fault(offset int, format string, args ...any) *SyntaxError {
	line, column := f.Position(min(offset, len(f.Text)))
	return &SyntaxError{File: f.Name, Line: line, Column: column + 1, Message: fmt.Sprintf(format, args...)}
}
