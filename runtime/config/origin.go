package config

import (
	"fmt"
	"strconv"
)

// Origin says where a value was written. The zero Origin belongs to values made by code.
type Origin struct {
	// File is the path of the file as shown to users; Line and Column count from 1, a zero Column means the whole line.
	File   string
	Line   int
	Column int
	// Env names the environment variables whose values were substituted, separated by commas.
	Env string
	// Token is the command line token, and Position its place among the override tokens, counted from 1.
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
