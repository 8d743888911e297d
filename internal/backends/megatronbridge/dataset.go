package megatronbridge

import (
	"fmt"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/backends/python"
	"github.com/primus-fl/primus/runtime/backend"
)

// pathLists are the arguments that list data, and pathTexts those that name a file of arguments
// about data.
var (
	pathLists = []string{"data_paths", "train_data_path", "valid_data_path", "test_data_path"}
	pathTexts = []string{"data_args_path", "per_split_data_args_path"}
)

const setBy = "framework " + Framework

// normalise brings the arguments that name datasets into one form: lists of paths, texts without
// spaces around them, null for empty texts and none, and mock in place of mock_data. Real data
// switches mock data off.
func normalise(args *backend.Args) error {
	real := false
	for _, key := range pathLists {
		v, ok := args.Lookup(key)
		if !ok {
			continue
		}
		list, err := paths(key, v)
		if err != nil {
			return err
		}
		real = real || len(list) > 0
		var value any = list
		if list == nil {
			value = nil
		}
		if err := args.Set(key, value, setBy); err != nil {
			return err
		}
	}
	for _, key := range pathTexts {
		v, ok := args.Lookup(key)
		text, isText := v.Str()
		if !ok || !isText {
			continue
		}
		var value any
		if text = strings.TrimSpace(text); !empty(text) {
			value, real = text, true
		}
		if err := args.Set(key, value, setBy); err != nil {
			return err
		}
	}
	return mock(args, real)
}

// mock replaces the alias mock_data and settles whether mock data is used.
func mock(args *backend.Args, real bool) error {
	const key, alias = "mock", "mock_data"
	on, err := optionalBool(args, key)
	if err != nil {
		return err
	}
	if on == nil {
		if on, err = optionalBool(args, alias); err != nil {
			return err
		}
	}
	if args.Has(alias) {
		args.Delete(alias, setBy)
	}
	switch {
	case real:
		return args.Set(key, false, setBy)
	case on != nil:
		return args.Set(key, *on, setBy)
	}
	return nil
}

// optionalBool returns a switch, which may be a text, or nil for one that is not given, null or
// none.
func optionalBool(args *backend.Args, key string) (*bool, error) {
	v, ok := args.Lookup(key)
	if !ok || v.IsNull() {
		return nil, nil
	}
	if on, isBool := v.Bool(); isBool {
		return &on, nil
	}
	text, isText := v.Str()
	text = strings.ToLower(strings.TrimSpace(text))
	switch on := text == "true"; {
	case isText && empty(text):
		return nil, nil
	case isText && (on || text == "false"):
		return &on, nil
	}
	return nil, &document.Error{Origin: v.Origin(), Path: key, Problem: fmt.Sprintf("given %s %q, want true or false", v.Kind(), v.Text())}
}

// paths returns the paths of a list, or of a text that is one path or a list in Python's notation;
// nil for none.
func paths(key string, v document.Value) ([]any, error) {
	switch v.Kind() {
	case document.KindNull:
		return nil, nil
	case document.KindList:
		items, _ := v.List()
		return texts(items), nil
	case document.KindString:
	default:
		return nil, &document.Error{Origin: v.Origin(), Path: key, Problem: fmt.Sprintf("given %s %s, want a path or a list of paths", v.Kind(), v.Text())}
	}
	text := strings.TrimSpace(v.Text())
	if empty(text) {
		return nil, nil
	}
	if !strings.HasPrefix(text, "[") {
		return []any{text}, nil
	}
	parsed, _, err := document.ParseOverrides([]string{key + "=" + text})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	value, _ := parsed.Lookup(key)
	items, isList := value.List()
	if !isList {
		return nil, &document.Error{Origin: v.Origin(), Path: key, Problem: fmt.Sprintf("given %q, want a list such as ['a', 'b']", text)}
	}
	return texts(items), nil
}

// texts returns the items as texts, such as paths with their weights, without those that stand for
// no path.
func texts(items []document.Value) []any {
	var list []any
	for _, item := range items {
		if text := python.Str(item); !empty(strings.TrimSpace(text)) {
			list = append(list, text)
		}
	}
	return list
}

// empty reports whether a text means no path.
func empty(text string) bool { return text == "" || strings.EqualFold(text, "none") }
