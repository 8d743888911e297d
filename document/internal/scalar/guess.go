package scalar

import (
	"regexp"
	"strings"
)

var (
	envInt   = regexp.MustCompile(`^-?[0-9]+$`)
	envFloat = regexp.MustCompile(`^-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$`)

	overrideInt   = regexp.MustCompile(`^[+-]?[0-9]+(?:_[0-9]+)*$`)
	overrideFloat = regexp.MustCompile(`^[+-]?(?:[0-9]+(?:_[0-9]+)*\.?(?:[0-9]+(?:_[0-9]+)*)?|\.[0-9]+(?:_[0-9]+)*)` +
		`(?:[eE][+-]?[0-9]+(?:_[0-9]+)*)?$`)
)

// Env types text that resulted from substituting environment variables: bools in any case, decimal
// integers with an optional minus, floats with an optional minus and exponent. Everything else
// stays text, null and surrounding spaces included.
func Env(text string) (any, error) {
	if b, ok := wordBool(text); ok {
		return b, nil
	}
	return signedNumber(text, envInt, envFloat)
}

// Override types the value of a command line override that is no literal: bools in any case, `null`
// and `None`, integers and floats with sign, separators and exponent. Everything else stays text.
func Override(text string) (any, error) {
	if b, ok := wordBool(text); ok {
		return b, nil
	}
	if text == "null" || text == "None" {
		return nil, nil
	}
	return signedNumber(text, overrideInt, overrideFloat)
}

func wordBool(text string) (value, ok bool) {
	switch {
	case strings.EqualFold(text, "true"):
		return true, true
	case strings.EqualFold(text, "false"):
		return false, true
	default:
		return false, false
	}
}

func signedNumber(text string, intForm, floatForm *regexp.Regexp) (any, error) {
	isInt := intForm.MatchString(text)
	if !isInt && !floatForm.MatchString(text) {
		return text, nil
	}
	digits := strings.ReplaceAll(text, "_", "")
	negative := strings.HasPrefix(digits, "-")
	digits = strings.TrimLeft(digits, "+-")
	if isInt {
		return parseInt(digits, 10, negative)
	}
	f, ok := parseFloat(digits)
	if !ok {
		return text, nil
	}
	if negative {
		f = -f
	}
	return f, nil
}
