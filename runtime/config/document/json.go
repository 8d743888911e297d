package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/primus-fl/primus/runtime/config/document/internal/scalar"
)

// jsonLoader reads one JSON value; numbers without fraction and exponent are ints of any size.
type jsonLoader struct{}

// Extensions implements loader.
func (jsonLoader) Extensions() []string { return []string{".json"} }

// Load implements loader.
func (jsonLoader) Load(file string, data []byte) (Value, []Duplicate, error) {
	if !utf8.Valid(data) {
		return Value{}, nil, &Error{Origin: Origin{File: file}, Problem: "invalid JSON: not UTF-8 text"}
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return Value{}, nil, nil
	}
	t := &jsonTree{tree: tree{file: file}, data: data, lines: newLines(data), decoder: json.NewDecoder(bytes.NewReader(data))}
	t.decoder.UseNumber()
	root, err := t.value(0)
	if err != nil {
		return Value{}, nil, err
	}
	end := t.next()
	if _, err := t.decoder.Token(); !errors.Is(err, io.EOF) {
		return Value{}, nil, &Error{Origin: *end, Problem: "invalid JSON: text after the value"}
	}
	return root, t.duplicates, nil
}

type jsonTree struct {
	tree
	data    []byte
	lines   lines
	decoder *json.Decoder
}

// nextOffset returns where the next token begins.
func (t *jsonTree) nextOffset() int {
	offset := int(t.decoder.InputOffset())
	for offset < len(t.data) && strings.IndexByte(" \t\r\n,:", t.data[offset]) >= 0 {
		offset++
	}
	return offset
}

func (t *jsonTree) next() *Origin { return t.lines.origin(t.file, t.nextOffset()) }

func (t *jsonTree) token() (json.Token, error) {
	token, err := t.decoder.Token()
	if err == nil {
		return token, nil
	}
	offset := t.nextOffset()
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		// Some syntax errors count the offending byte and some do not; neither lies before the next token.
		offset = max(offset, int(syntax.Offset)-1)
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return nil, &Error{Origin: *t.lines.origin(t.file, offset), Problem: "invalid JSON", Err: err}
}

func (t *jsonTree) value(depth int) (Value, error) {
	origin := t.next()
	if err := t.enter(origin, depth); err != nil {
		return Value{}, err
	}
	token, err := t.token()
	if err != nil {
		return Value{}, err
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '{' {
			return t.object(origin, depth)
		}
		return t.array(origin, depth)
	case json.Number:
		// The override rules read every JSON number; a fraction or an exponent makes it a float.
		data, err := scalar.Override(token.String())
		if err != nil {
			return Value{}, &Error{Origin: *origin, Err: err}
		}
		return Value{data: data, text: token.String(), origin: origin}, nil
	default:
		return Value{data: token, origin: origin}, nil
	}
}

func (t *jsonTree) object(origin *Origin, depth int) (Value, error) {
	m := newMap(0)
	for t.decoder.More() {
		token, err := t.token()
		if err != nil {
			return Value{}, err
		}
		value, err := t.value(depth + 1)
		if err != nil {
			return Value{}, err
		}
		if key, ok := token.(string); ok {
			t.put(m, key, value)
		}
	}
	_, err := t.token()
	return Value{data: m, origin: origin}, err
}

func (t *jsonTree) array(origin *Origin, depth int) (Value, error) {
	items := []Value{}
	for t.decoder.More() {
		item, err := t.value(depth + 1)
		if err != nil {
			return Value{}, err
		}
		items = append(items, item)
	}
	_, err := t.token()
	return Value{data: items, origin: origin}, err
}
