package scalar

import (
	"encoding/base64"
	"fmt"
	"math"
	"regexp"
	"strings"
)

// MergeKey is the plain scalar that merges other mappings into the current one.
const MergeKey = "<<"

// The YAML 1.1 implicit typing rules as SafeLoader of PyYAML 6 applies them.
var (
	yamlInt   = regexp.MustCompile(`^(?:[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+)$`)
	yamlFloat = regexp.MustCompile(`^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?|` +
		`[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`)
)

// YAML types a plain (unquoted, untagged) scalar by the implicit rules of YAML 1.1.
func YAML(text string) (any, error) {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return nil, nil
	case "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON":
		return true, nil
	case "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF":
		return false, nil
	case MergeKey:
		return nil, fmt.Errorf("%q is only allowed as a mapping key; quote it", text)
	case "=":
		return nil, fmt.Errorf("%q alone is the YAML 1.1 value tag; quote it", text)
	}
	switch {
	case strings.IndexByte("+-.0123456789", text[0]) < 0:
		return text, nil
	case yamlFloat.MatchString(text):
		return yamlFloatValue(text)
	case yamlInt.MatchString(text):
		return yamlIntValue(text)
	case timestamp.MatchString(text):
		return parseTimestamp(text)
	default:
		return text, nil
	}
}

// Tagged types a scalar that carries an explicit tag in its short form, such as "!!int".
func Tagged(tag, text string) (any, error) {
	switch tag {
	case "!!str":
		return text, nil
	case "!!null":
		return nil, nil
	case "!!bool":
		return yamlBoolValue(text)
	case "!!int":
		return yamlIntValue(text)
	case "!!float":
		return yamlFloatValue(text)
	case "!!timestamp":
		if !timestamp.MatchString(text) {
			return nil, fmt.Errorf("%q is not a timestamp", text)
		}
		return parseTimestamp(text)
	case "!!binary":
		compact := strings.Join(strings.Fields(text), "")
		data, err := base64.StdEncoding.DecodeString(compact)
		if err != nil {
			return nil, fmt.Errorf("invalid !!binary value: %w", err)
		}
		return data, nil
	default:
		return nil, fmt.Errorf("unknown tag %q on a scalar", tag)
	}
}

func yamlBoolValue(text string) (any, error) {
	switch strings.ToLower(text) {
	case "yes", "true", "on":
		return true, nil
	case "no", "false", "off":
		return false, nil
	default:
		return nil, fmt.Errorf("%q is not a bool", text)
	}
}

func yamlIntValue(text string) (any, error) {
	digits := strings.ReplaceAll(text, "_", "")
	negative := strings.HasPrefix(digits, "-")
	digits = strings.TrimLeft(digits, "+-")
	if len(text)-len(digits)-strings.Count(text, "_") > 1 {
		return nil, fmt.Errorf("%q is not an int", text)
	}
	var (
		value any
		err   error
	)
	switch {
	case digits == "0":
		return int64(0), nil
	case strings.HasPrefix(digits, "0b"):
		value, err = parseInt(digits[2:], 2, negative)
	case strings.HasPrefix(digits, "0x"):
		value, err = parseInt(digits[2:], 16, negative)
	case strings.HasPrefix(digits, "0"):
		value, err = parseInt(digits, 8, negative)
	case strings.Contains(digits, ":"):
		value, err = sexagesimalInt(digits, negative)
	default:
		value, err = parseInt(digits, 10, negative)
	}
	if err != nil {
		return nil, fmt.Errorf("%q is not an int: %w", text, err)
	}
	return value, nil
}

func yamlFloatValue(text string) (any, error) {
	digits := strings.ToLower(strings.ReplaceAll(text, "_", ""))
	sign := 1.0
	if rest, ok := strings.CutPrefix(digits, "-"); ok {
		sign, digits = -1, rest
	} else {
		digits = strings.TrimPrefix(digits, "+")
	}
	switch {
	case digits == ".inf":
		return sign * math.Inf(1), nil
	case digits == ".nan":
		return math.NaN(), nil
	case strings.Contains(digits, ":"):
		f, err := sexagesimalFloat(digits)
		if err != nil {
			return nil, fmt.Errorf("%q is not a float: %w", text, err)
		}
		return sign * f, nil
	}
	f, ok := parseFloat(digits)
	if !ok {
		return nil, fmt.Errorf("%q is not a float", text)
	}
	return sign * f, nil
}
