package config

import (
	"errors"
	"regexp"
	"strings"
)

// Variable is one entry of the env block of an experiment.
type Variable struct {
	Name, Value string
	Origin      Origin
}

var shellVariable = regexp.MustCompile(`\$(?:\w+|\{[^}]*\})`)

// Variables returns the env block in file order: variables that the training process should see whatever its environment
// says. Values are spelled as in the file, and $NAME and ${NAME} in them are replaced when lookup finds the variable, which
// is os.LookupEnv in programs. Null, lists and mappings cannot be variables; the error joins one [*Error] for each.
func (e *Experiment) Variables(lookup func(name string) (value string, ok bool)) ([]Variable, error) {
	var (
		variables []Variable
		errs      []error
	)
	for name, value := range e.Env.All() {
		switch value.Kind() {
		case KindNull, KindList, KindMap:
			errs = append(errs, wrongType(value, joinPath("env", name), "a text, a number or a bool", ""))
			continue
		}
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value.Text(), "\x00") {
			errs = append(errs, &Error{
				Origin: value.Origin(), Path: joinPath("env", name), Problem: "a name has at least one character and no =, and no NUL is allowed",
			})
			continue
		}
		text := shellVariable.ReplaceAllStringFunc(value.Text(), func(reference string) string {
			if found, ok := lookup(strings.Trim(reference, "${}")); ok {
				return found
			}
			return reference
		})
		variables = append(variables, Variable{Name: name, Value: text, Origin: value.Origin()})
	}
	return variables, errors.Join(errs...)
}
