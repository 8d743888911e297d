package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/primus-fl/primus/runtime/config/internal/pylit"
	"github.com/primus-fl/primus/runtime/config/internal/scalar"
)

// coerce types the value of an override. hint is set where text that begins like a literal is none and stays text.
func coerce(text string, origin *Origin) (value Value, hint string, err error) {
	data, err := scalar.Override(text)
	if err != nil {
		return Value{}, "", err
	}
	if text != "" && strings.IndexByte("[({", text[0]) >= 0 {
		literal, parseErr := pylit.Parse(text)
		switch {
		case parseErr == nil:
			value, err = fromLiteral(literal, origin)
			return value, "", err
		case !errors.Is(parseErr, pylit.ErrSyntax):
			return Value{}, "", parseErr
		}
		hint = "write a Python literal such as [1, 'a', True, None] (" + parseErr.Error() + ")"
	}
	return Value{data: data, text: text, origin: origin, guessed: true}, hint, nil
}

// fromLiteral converts a literal. Strings that are exactly "null" become null outside lists, as everywhere.
func fromLiteral(literal any, origin *Origin) (Value, error) {
	switch l := literal.(type) {
	case pylit.List:
		return listLiteral(l, origin)
	case pylit.Tuple:
		return listLiteral(l, origin)
	case pylit.Dict:
		m := newMap(len(l))
		for _, pair := range l {
			key, ok := pair.Key.(string)
			if !ok {
				return Value{}, fmt.Errorf("given %v as key, expected a quoted string", pair.Key)
			}
			value, err := fromLiteral(pair.Value, origin)
			if err != nil {
				return Value{}, err
			}
			m.set(key, value)
		}
		return Value{data: nullStrings(m), origin: origin}, nil
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
