package policyfile

import (
	"fmt"
	"strconv"
)

// Place is where something is written. Line and Column count from 1; a zero Line
// means that File says everything, as for an argument of a command line.
type Place struct {
	File   string
	Line   int
	Column int
}

// String returns file:line:column, as far as they are known.
func (p Place) String() string {
	if p.Line > 0 && p.Column > 0 {
		return p.Source() + ":" + strconv.Itoa(p.Column)
	}
	return p.Source()
}

// Source returns file:line, which is what a policy remembers of a value.
func (p Place) Source() string {
	if p.Line > 0 {
		return p.File + ":" + strconv.Itoa(p.Line)
	}
	return p.File
}

// Type is the type of a Value, by the name that messages use.
type Type string

// The types of values.
const (
	TypeNull    Type = "null"
	TypeBool    Type = "bool"
	TypeInt     Type = "int"
	TypeFloat   Type = "float"
	TypeString  Type = "string"
	TypeList    Type = "list"
	TypeMapping Type = "mapping"
)

// Value is a node of a policy document.
type Value struct {
	Place   Place
	Type    Type
	Text    string  // of what is no list and no mapping
	Items   []Value // of a list
	Entries []Entry // of a mapping, in order

	// Exact says that Text is spelled in one line as it is, so that a place
	// inside of it can be counted from Place.
	Exact bool
}

// Entry is a key of a mapping with its value.
type Entry struct {
	Key   string
	Place Place // of the key
	Value Value

	// Name is what messages call the key; "" means the key with those above it.
	Name string
}

// given describes a value for messages.
func (v Value) given() string {
	switch v.Type {
	case TypeNull:
		return "null"
	case TypeList:
		return fmt.Sprintf("a list of %d", len(v.Items))
	case TypeMapping:
		return fmt.Sprintf("a mapping of %d", len(v.Entries))
	case TypeString:
		return strconv.Quote(shorten(v.Text))
	default:
		return string(v.Type) + " " + shorten(v.Text)
	}
}

// at returns the place of a byte of the text, the beginning where it cannot be
// counted.
func (v Value) at(offset int) Place {
	p := v.Place
	if v.Exact && p.Column > 0 {
		p.Column += len([]rune(v.Text[:min(offset, len(v.Text))]))
	}
	return p
}

// mostShown is how many bytes of a text messages quote.
const mostShown = 80

func shorten(text string) string {
	if len(text) <= mostShown {
		return text
	}
	return text[:mostShown] + "…"
}
