package ops

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/primus-fl/primus/internal/suggest"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
)

// Entry is an impl of an op in a catalogue.
type Entry struct {
	Op   string
	Impl oppolicy.Candidate
}

// Error is a fault in a catalogue.
type Error struct {
	File         string
	Line, Column int    // from 1; columns count characters
	Field        string // "" when the fault is in no field of an impl
	Problem      string
}

// Error names the file, the position, the field and what to write instead.
func (e *Error) Error() string {
	field := ""
	if e.Field != "" {
		field = e.Field + ": "
	}
	return fmt.Sprintf("catalog: %s:%d:%d: %s%s", e.File, e.Line, e.Column, field, e.Problem)
}

// fields are the fields of an impl in a catalogue.
var fields = []string{"op", "impl_id", "kind", "vendor", "priority", "available"}

// parser reads a catalogue token by token, which keeps the positions of values.
type parser struct {
	file string
	text []byte
	dec  *json.Decoder
}

// Parse reads a list of impls. Every error is a *Error.
func Parse(file string, text []byte) ([]Entry, error) {
	p := &parser{file: file, text: text, dec: json.NewDecoder(bytes.NewReader(text))}
	var whole json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil {
		at := len(text)
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			at = int(max(syntax.Offset-1, 0))
		}
		if len(bytes.TrimSpace(text)) == 0 {
			return nil, p.fault(0, "", "is empty, want a JSON list of impls")
		}
		return nil, p.fault(at, "", "not JSON: %v", err)
	}
	if whole = bytes.TrimSpace(whole); whole[0] != '[' {
		return nil, p.fault(bytes.Index(text, whole), "", "given %s, want a list of impls in [ ]", jsonKind(whole))
	}
	if _, err := p.dec.Token(); err != nil {
		return nil, p.fault(0, "", "not JSON: %v", err)
	}
	var entries []Entry
	seen := map[[2]string]int{}
	for p.dec.More() {
		entry, at, err := p.entry()
		if err != nil {
			return nil, err
		}
		key := [2]string{entry.Op, entry.Impl.ID}
		if first, twice := seen[key]; twice {
			line, column := p.position(first)
			return nil, p.fault(at, "impl_id", "impl %q of op %q is listed twice, first at %d:%d; keep one", key[1], key[0], line, column)
		}
		seen[key] = at
		entries = append(entries, entry)
	}
	return entries, nil
}

// value is the value of a field and where it begins.
type value struct {
	raw json.RawMessage
	at  int
}

// entry reads one impl and returns it with the position of its id.
func (p *parser) entry() (Entry, int, error) {
	begin := p.next()
	values, err := p.object(begin)
	if err != nil {
		return Entry{}, 0, err
	}
	var e Entry
	var kind string
	steps := []error{
		p.stringField(values, begin, "op", true, &e.Op),
		p.stringField(values, begin, "impl_id", true, &e.Impl.ID),
		p.stringField(values, begin, "kind", true, &kind),
		p.stringField(values, begin, "vendor", false, &e.Impl.Vendor),
	}
	for _, err := range steps {
		if err != nil {
			return e, 0, err
		}
	}
	if e.Impl.Kind, err = parseKind(kind); err != nil {
		return e, 0, p.fault(values["kind"].at, "kind", "%v", err)
	}
	e.Impl.Vendor = opregistry.NormalVendor(e.Impl.Vendor)
	if e.Impl.Kind == opregistry.KindVendor && e.Impl.Vendor == "" {
		at := begin
		if v, given := values["vendor"]; given {
			at = v.at
		}
		return e, 0, p.fault(at, "vendor", "impl %q of op %q has the kind vendor and no vendor, want its name", e.Impl.ID, e.Op)
	}
	if v, given := values["priority"]; given {
		if err := json.Unmarshal(v.raw, &e.Impl.Priority); err != nil || string(v.raw) == "null" {
			return e, 0, p.fault(v.at, "priority", "given %s, want a whole number", shorten(v.raw))
		}
	}
	if v, given := values["available"]; given {
		if e.Impl.Unusable, err = p.unusable(v); err != nil {
			return e, 0, err
		}
	}
	return e, values["impl_id"].at, nil
}

// object reads the fields of an impl that begins at an offset.
func (p *parser) object(begin int) (map[string]value, error) {
	if p.text[begin] != '{' {
		return nil, p.fault(begin, "", "given %s, want an impl in { }", jsonKind(p.text[begin:]))
	}
	if _, err := p.dec.Token(); err != nil {
		return nil, p.fault(begin, "", "not JSON: %v", err)
	}
	values := map[string]value{}
	for p.dec.More() {
		at := p.next()
		token, err := p.dec.Token()
		if err != nil {
			return nil, p.fault(at, "", "not JSON: %v", err)
		}
		name := fmt.Sprint(token)
		if _, twice := values[name]; twice {
			return nil, p.fault(at, name, "is given twice; keep one")
		}
		if !slices.Contains(fields, name) {
			return nil, p.fault(at, "", "unknown field %q, want %s%s", name, strings.Join(fields, ", "), suggest.Hint(name, fields))
		}
		v := value{at: p.next()}
		if err := p.dec.Decode(&v.raw); err != nil {
			return nil, p.fault(v.at, name, "not JSON: %v", err)
		}
		values[name] = v
	}
	if _, err := p.dec.Token(); err != nil && !errors.Is(err, io.EOF) {
		return nil, p.fault(begin, "", "not JSON: %v", err)
	}
	return values, nil
}

// stringField reads a field that is one text. One that is not required may be null or left out.
func (p *parser) stringField(values map[string]value, begin int, name string, required bool, to *string) error {
	v, given := values[name]
	switch {
	case !given && required:
		return p.fault(begin, name, "is missing")
	case !given, !required && string(v.raw) == "null":
		return nil
	case v.raw[0] != '"':
		return p.fault(v.at, name, "given %s, want a text", shorten(v.raw))
	}
	if err := json.Unmarshal(v.raw, to); err != nil {
		return p.fault(v.at, name, "given %s, want a text", shorten(v.raw))
	}
	if required && strings.TrimSpace(*to) == "" {
		return p.fault(v.at, name, "is blank")
	}
	return nil
}

// parseKind reads the name of a kind, which may be the old name of flagos.
func parseKind(name string) (opregistry.Kind, error) {
	if strings.EqualFold(strings.TrimSpace(name), "default") {
		return opregistry.KindFlagos, nil
	}
	kind, err := opregistry.ParseKind(name)
	if err != nil {
		names := []string{"flagos", "vendor", "reference", "default"}
		return kind, fmt.Errorf("unknown kind %q, want flagos, vendor or reference%s", name, suggest.Hint(name, names))
	}
	return kind, nil
}

// unusable returns why an impl cannot run by the field available, "" when it can.
func (p *parser) unusable(v value) (string, error) {
	switch {
	case string(v.raw) == "true":
		return "", nil
	case string(v.raw) == "false":
		line, column := p.position(v.at)
		return fmt.Sprintf("unavailable: %s:%d:%d says so", p.file, line, column), nil
	case v.raw[0] == '"':
		var reason string
		if err := json.Unmarshal(v.raw, &reason); err == nil && strings.TrimSpace(reason) != "" {
			return "unavailable: " + reason, nil
		}
	case v.raw[0] == '{':
		var answer struct {
			Return json.RawMessage `json:"return"`
			Reason string          `json:"reason"`
		}
		if err := json.Unmarshal(v.raw, &answer); err != nil {
			return "", p.fault(v.at, "available", "given %s, want the reason as a text", shorten(v.raw))
		}
		if string(answer.Return) == "true" {
			return "", nil
		}
		return "unavailable: " + cmp.Or(answer.Reason, "its probe answered "+shorten(v.raw)), nil
	}
	return "", p.fault(v.at, "available", "given %s, want true, false, the reason why not, or an object", shorten(v.raw))
}

// next returns where the next value begins.
func (p *parser) next() int {
	at := int(p.dec.InputOffset())
	for at < len(p.text) && strings.IndexByte(" \t\r\n,:", p.text[at]) >= 0 {
		at++
	}
	return at
}

func (p *parser) fault(at int, field, format string, args ...any) error {
	line, column := p.position(at)
	return &Error{File: p.file, Line: line, Column: column, Field: field, Problem: fmt.Sprintf(format, args...)}
}

func (p *parser) position(at int) (line, column int) {
	before := p.text[:min(at, len(p.text))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1
}

// jsonKind says what sort of value a JSON text begins with.
func jsonKind(raw []byte) string {
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a text"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "a number"
}

// shorten returns a JSON value on one line, cut when it is long.
func shorten(raw json.RawMessage) string {
	var line bytes.Buffer
	if err := json.Compact(&line, raw); err != nil {
		return string(raw)
	}
	if runes := []rune(line.String()); len(runes) > 60 {
		return string(runes[:60]) + "…"
	}
	return line.String()
}
