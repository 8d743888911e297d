package document

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Origin says where a value was written. The zero Origin belongs to values made by code.
type Origin struct {
	// File is the path of the file as shown to users; Line and Column count from 1, a zero Column
	// means the whole line.
	File   string
	Line   int
	Column int
	// Env names the environment variables whose values were substituted, separated by commas.
	Env string
	// Token is the command line token, and Position its place among the override tokens, counted from
	// 1.
	Token    string
	Position int
}

// IsZero reports whether o says nothing.
func (o Origin) IsZero() bool { return o == Origin{} }

// String renders o as file:line:column, or as a command line argument.
func (o Origin) String() string {
	if o.Position > 0 {
		return fmt.Sprintf("override %d %q", o.Position, o.Token)
	}
	text := o.File
	if o.Line > 0 {
		text += ":" + strconv.Itoa(o.Line)
	}
	if o.Line > 0 && o.Column > 0 {
		text += ":" + strconv.Itoa(o.Column)
	}
	if o.Env != "" {
		text += " (from environment variable " + o.Env + ")"
	}
	return text
}

// Source renders o without the column.
func (o Origin) Source() string {
	o.Column = 0
	return o.String()
}

// Note says in one line where v was written and what it replaced, "" for a value made by code or a
// mapping that replaced nothing, whose keys speak for themselves.
func (v Value) Note() string {
	replaced := v.Replaced()
	if v.Origin().IsZero() || v.Kind() == KindMap && len(replaced) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(v.Origin().String())
	for _, old := range replaced {
		b.WriteString("; over " + Shorten(old.String()) + " (" + old.Origin().String() + ")")
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, b.String())
}

// String spells a value on one line: scalars as in YAML, but strings in quotes, lists and mappings
// as in JSON.
func (v Value) String() string {
	switch v.Kind() {
	case KindString, KindList, KindMap:
		var b bytes.Buffer
		if err := v.appendJSON(&b); err != nil {
			return v.Describe()
		}
		return b.String()
	}
	return v.canonical()
}
