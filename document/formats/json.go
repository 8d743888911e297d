package formats

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/internal/scalar"
)

// JSON is the format JSON. Numbers without fraction and exponent are ints of any size. Written,
// infinities, NaN, dates and bytes become strings that spell them as in YAML, and origins, for
// which JSON has no comments, a further key of that name.
type JSON struct{}

var _ document.Renderer = JSON{}

// Name implements document.Loader.
func (JSON) Name() string { return "json" }

// Extensions implements document.Loader.
func (JSON) Extensions() []string { return []string{".json"} }

// Load implements document.Loader.
func (JSON) Load(ctx context.Context, file string, data []byte) (document.Value, []document.Duplicate, error) {
	if !utf8.Valid(data) {
		return document.Value{}, nil, &document.Error{Origin: document.Origin{File: file}, Problem: "invalid JSON: not UTF-8 text"}
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return document.Value{}, nil, nil
	}
	t := &jsonTree{Tree: document.NewTree(ctx), file: file, data: data, lines: newLines(data), decoder: json.NewDecoder(bytes.NewReader(data))}
	t.decoder.UseNumber()
	root, err := t.value(0)
	if err != nil {
		return document.Value{}, nil, err
	}
	end := t.next()
	if _, err := t.decoder.Token(); !errors.Is(err, io.EOF) {
		return document.Value{}, nil, &document.Error{Origin: end, Problem: "invalid JSON: text after the value"}
	}
	return root, t.Duplicates(), nil
}

type jsonTree struct {
	document.Tree
	file    string
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

func (t *jsonTree) next() document.Origin { return t.lines.origin(t.file, t.nextOffset()) }

func (t *jsonTree) token() (json.Token, error) {
	token, err := t.decoder.Token()
	if err == nil {
		return token, nil
	}
	offset := t.nextOffset()
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		// Some syntax errors count the offending byte and some do not; neither lies before the next
		// token.
		offset = max(offset, int(syntax.Offset)-1)
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return nil, &document.Error{Origin: t.lines.origin(t.file, offset), Problem: "invalid JSON", Err: err}
}

func (t *jsonTree) value(depth int) (document.Value, error) {
	origin := t.next()
	if err := t.Enter(origin, depth); err != nil {
		return document.Value{}, err
	}
	token, err := t.token()
	if err != nil {
		return document.Value{}, err
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
			return document.Value{}, &document.Error{Origin: origin, Err: err}
		}
		return scalarValue(data, token.String(), origin)
	default:
		return scalarValue(token, "", origin)
	}
}

func (t *jsonTree) object(origin document.Origin, depth int) (document.Value, error) {
	var m document.Builder
	for t.decoder.More() {
		at := t.next()
		token, err := t.token()
		if err != nil {
			return document.Value{}, err
		}
		value, err := t.value(depth + 1)
		if err != nil {
			return document.Value{}, err
		}
		if key, ok := token.(string); ok {
			t.Put(&m, key, value.KeyAt(at))
		}
	}
	_, err := t.token()
	return document.MapValue(m.Map()).At(origin), err
}

func (t *jsonTree) array(origin document.Origin, depth int) (document.Value, error) {
	items := []document.Value{}
	for t.decoder.More() {
		item, err := t.value(depth + 1)
		if err != nil {
			return document.Value{}, err
		}
		items = append(items, item)
	}
	_, err := t.token()
	return document.ListValue(items).At(origin), err
}

// Render implements document.Renderer.
func (JSON) Render(m *document.Map, origins bool) ([]byte, error) {
	if origins {
		var listed document.Builder
		listOrigins(&listed, m, "")
		noted := document.NewBuilder(m)
		noted.Set("origins", document.MapValue(listed.Map()))
		m = noted.Map()
	}
	compact, err := m.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, compact, "", "  "); err != nil {
		return nil, fmt.Errorf("document: render JSON: %w", err)
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// listOrigins adds to list, for each value below m that has an origin, its path with where it was
// written and what it replaced.
func listOrigins(list *document.Builder, m *document.Map, path string) {
	for key, value := range m.All() {
		at := document.JoinPath(path, key)
		replaced := value.Replaced()
		if nested, ok := value.Map(); ok {
			listOrigins(list, nested, at)
			if len(replaced) == 0 {
				continue
			}
		}
		if value.Origin().IsZero() {
			continue
		}
		var entry document.Builder
		entry.Set("origin", document.StringValue(value.Origin().String()))
		var older []document.Value
		for _, old := range replaced {
			var one document.Builder
			one.Set("value", old)
			one.Set("origin", document.StringValue(old.Origin().String()))
			older = append(older, document.MapValue(one.Map()))
		}
		if older != nil {
			entry.Set("replaced", document.ListValue(older))
		}
		list.Set(at, document.MapValue(entry.Map()))
	}
}
