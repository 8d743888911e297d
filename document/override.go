package document

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/primus-fl/primus/document/internal/scalar"
	"github.com/primus-fl/primus/internal/secret"
)

// ParseOverrides reads command line tokens such as lr=1e-4, --lr=1e-4, --lr 1e-4, --flag and
// model.layers=24, later ones win. Dots nest. Values are typed as [Decode] documents for guessed
// scalars: bools in any case, null and None, numbers, Python literals in brackets, else text.
//
// A token without a form, and two tokens that contradict each other such as a=1 a.b=2, are errors
// that match [ErrUsage]; all of them are reported. Tokens that are legal but probably mistakes give
// warnings.
func ParseOverrides(tokens []string) (*Map, []Warning, error) {
	o := &overrides{result: newMap(len(tokens))}
	for i := 0; i < len(tokens); i++ {
		token := strings.TrimSpace(tokens[i])
		origin := &Origin{Token: token, Position: i + 1}
		bare := strings.TrimSpace(strings.TrimLeft(token, "-"))
		name, text, hasValue := strings.Cut(token, "=")
		switch {
		case token == "":
		case !utf8.ValidString(token):
			o.fail(origin, "token is not UTF-8 text", "")
		case hasValue:
			if value := strings.TrimSpace(text); secret.Value(strings.TrimSpace(strings.TrimLeft(name, "-")), value) {
				origin.Token = name + "=" + hidden
			}
			o.assign(strings.TrimSpace(strings.TrimLeft(name, "-")), strings.TrimSpace(text), origin)
		case !strings.HasPrefix(token, "--"):
			o.fail(origin, "token has no value, want key=value or --key value", "")
		case bare == "":
			o.fail(origin, "token names no key", "override tokens need no separator")
		case i+1 < len(tokens) && !strings.HasPrefix(tokens[i+1], "--"):
			i++
			shown := tokens[i]
			if secret.Value(bare, shown) {
				shown = hidden
			}
			origin.Token += " " + shown
			if strings.Contains(tokens[i], "=") {
				o.warn(origin, fmt.Sprintf("--%s takes the next token %q as its value", bare, shown),
					fmt.Sprintf("write --%s=true if it is a flag", bare))
			}
			o.assign(bare, strings.TrimSpace(tokens[i]), origin)
		default:
			o.put(bare, Value{data: true, text: "true", origin: origin, guessed: true})
		}
	}
	return o.result, o.warnings, errors.Join(o.errs...)
}

// hidden replaces a secret in the token of an origin, which messages show.
const hidden = "***"

type overrides struct {
	result   *Map
	warnings []Warning
	errs     []error
}

func (o *overrides) fail(origin *Origin, problem, hint string) {
	o.errs = append(o.errs, &Error{Origin: *origin, Problem: problem, Hint: hint, Kind: ErrUsage})
}

func (o *overrides) warn(origin *Origin, message, hint string) {
	o.warnings = append(o.warnings, Warning{Origin: *origin, Message: message, Hint: hint})
}

func (o *overrides) assign(key, text string, origin *Origin) {
	if !utf8.ValidString(text) {
		o.fail(origin, "token is not UTF-8 text", "")
		return
	}
	value, hint, err := coerce(text, origin)
	if err != nil {
		o.errs = append(o.errs, &Error{Origin: *origin, Path: key, Err: err, Kind: ErrUsage})
		return
	}
	if hint != "" {
		o.warn(origin, "value is taken as text", hint)
	}
	o.put(key, value)
}

// maxNesting bounds the segments of a dotted key.
const maxNesting = 50

// put stores value under a dotted key and refuses to nest below a value that an earlier token set.
func (o *overrides) put(key string, value Value) {
	segments := strings.Split(key, ".")
	if len(segments) > maxNesting {
		o.fail(value.origin, fmt.Sprintf("given %d key segments, want at most %d", len(segments), maxNesting), "")
		return
	}
	current := o.result
	for i, segment := range segments[:len(segments)-1] {
		existing, ok := current.Lookup(segment)
		if !ok {
			existing = Value{data: newMap(1), origin: value.origin}
			current.set(segment, existing)
		}
		nested, isMap := existing.Map()
		if !isMap {
			o.fail(value.origin, fmt.Sprintf("%s cannot be set because %s sets %s to %s",
				key, existing.Origin(), strings.Join(segments[:i+1], "."), existing.Describe()), "drop one of the two")
			return
		}
		current = nested
	}
	last := segments[len(segments)-1]
	if old, ok := current.Lookup(last); ok {
		if old.Kind() == KindMap {
			o.warn(value.origin, fmt.Sprintf("%s replaces the mapping that %s began", key, old.Origin()), "")
		}
		value = value.Replacing(old)
	}
	for _, segment := range segments {
		if segment == "" {
			o.warn(value.origin, fmt.Sprintf("key %q has an empty segment", key), "")
			break
		}
	}
	current.set(last, value)
}

// coerce types the value of an override. hint is set where text that begins like a literal is none
// and stays text.
func coerce(text string, origin *Origin) (value Value, hint string, err error) {
	data, err := scalar.Override(text)
	if err != nil {
		return Value{}, "", err
	}
	if text != "" && strings.IndexByte("[({", text[0]) >= 0 {
		literal, parseErr := parseLiteral(text)
		switch {
		case parseErr == nil:
			value, err = fromLiteral(literal, origin)
			return value, "", err
		case !errors.Is(parseErr, ErrSyntax):
			return Value{}, "", parseErr
		}
		hint = "write a Python literal such as [1, 'a', True, None] (" + parseErr.Error() + ")"
	}
	return Value{data: data, text: text, origin: origin, guessed: true}, hint, nil
}

// fromLiteral converts a literal. Strings that are exactly "null" become null outside lists, as
// everywhere.
func fromLiteral(literal any, origin *Origin) (Value, error) {
	switch l := literal.(type) {
	case List:
		return listLiteral(l, origin)
	case Tuple:
		return listLiteral(l, origin)
	case Dict:
		m := newMap(len(l))
		for _, pair := range l {
			key, ok := pair.Key.(string)
			if !ok {
				return Value{}, fmt.Errorf("given %v as key, want a quoted string", pair.Key)
			}
			value, err := fromLiteral(pair.Value, origin)
			if err != nil {
				return Value{}, err
			}
			m.set(key, value)
		}
		return Value{data: m.NullStrings(), origin: origin}, nil
	default:
		return Value{data: l, origin: origin}, nil
	}
}

func listLiteral(elements []any, origin *Origin) (Value, error) {
	items := make([]Value, len(elements))
	for i, element := range elements {
		item, err := fromLiteral(element, origin)
		if err != nil {
			return Value{}, err
		}
		items[i] = item
	}
	return Value{data: items, origin: origin}, nil
}
