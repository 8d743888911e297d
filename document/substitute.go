package document

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/primus-fl/primus/document/internal/scalar"
)

var variable = regexp.MustCompile(`\$\{([^:{}]+)(?::([^}]*))?\}`)

// literalDollar is a variable nobody sets; its default stands for a dollar sign that must not start
// a substitution.
const literalDollar = "${PRIMUS_DOLLAR:$}{"

// Escape keeps text that looks like a substitution from being one when it is loaded again.
func Escape(text string) string {
	if variable.MatchString(text) {
		return strings.ReplaceAll(text, "${", literalDollar)
	}
	return text
}

// Substitute returns root with ${NAME} and ${NAME:default} replaced in all its strings, in one pass
// without recursion. env looks up variables; nil means os.LookupEnv. A set but empty variable
// counts as set. Text that changed is typed: bools in any case, decimal ints and floats, else a
// string; its origin names the variables.
//
// The error joins one [*Error] for each problem; a variable that is not set and has no default
// matches [ErrUnsetVariable].
func Substitute(root Value, env func(name string) (value string, ok bool)) (Value, []Warning, error) {
	if env == nil {
		env = os.LookupEnv
	}
	s := &substituter{env: env}
	result := s.value(root, "")
	return result, s.warnings, errors.Join(s.errs...)
}

// substituter is one pass over a document.
type substituter struct {
	env      func(name string) (string, bool)
	warnings []Warning
	errs     []error
}

// value returns v with all strings in it substituted; problems are collected in s.errs.
func (s *substituter) value(v Value, path string) Value {
	switch d := v.data.(type) {
	case string:
		return s.text(v, d, path)
	case []Value:
		items := make([]Value, len(d))
		for i, item := range d {
			items[i] = s.value(item, fmt.Sprintf("%s[%d]", path, i))
		}
		v.data = items
	case *Map:
		m := newMap(d.Len())
		for key, item := range d.All() {
			m.set(key, s.value(item, JoinPath(path, key)))
		}
		v.data = m
	}
	return v
}

// text substitutes one string and types the result when it changed.
func (s *substituter) text(v Value, text, path string) Value {
	matches := variable.FindAllStringSubmatchIndex(text, -1)
	if matches == nil {
		return v
	}
	var (
		result strings.Builder
		used   []string
		end    int
		unset  bool
	)
	for _, m := range matches {
		name := text[m[2]:m[3]]
		replacement, ok := s.env(name)
		switch {
		case ok:
			used = append(used, name)
		case m[4] >= 0:
			replacement = text[m[4]:m[5]]
			if isQuoted(replacement) {
				s.warnings = append(s.warnings, Warning{
					Origin: v.Origin(), Path: path, Message: fmt.Sprintf("the default %s of ${%s} keeps its quotes", replacement, name),
					Hint: fmt.Sprintf("write ${%s:%s} unless they are meant", name, replacement[1:len(replacement)-1]),
				})
			}
		default:
			unset = true
			s.errs = append(s.errs, &Error{
				Origin: v.Origin(), Path: path, Kind: ErrUnsetVariable,
				Problem: fmt.Sprintf("${%s} has no default and the variable is not set", name),
				Hint:    fmt.Sprintf("export %s or write ${%s:value}", name, name),
			})
		}
		result.WriteString(text[end:m[0]])
		result.WriteString(replacement)
		end = m[1]
	}
	result.WriteString(text[end:])
	if unset || result.String() == text {
		return v
	}
	return s.typed(v, result.String(), used, path)
}

func (s *substituter) typed(v Value, text string, used []string, path string) Value {
	origin := v.Origin()
	origin.Env = strings.Join(used, ", ")
	data, err := scalar.Env(text)
	if !utf8.ValidString(text) {
		err = errors.New("value is not UTF-8 text")
	}
	if err != nil {
		s.errs = append(s.errs, &Error{Origin: origin, Path: path, Err: err})
		return v
	}
	return Value{data: data, text: text, origin: &origin, key: v.key, guessed: true}
}

func isQuoted(text string) bool {
	return len(text) >= 2 && text[0] == text[len(text)-1] && (text[0] == '"' || text[0] == '\'')
}
