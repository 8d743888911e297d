// Package recordtest reads the recorded results of the ancestor for configurations, for tests that
// compare with them.
package recordtest

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/primustest"
)

// Dir returns the directory of the recorded behaviour of the ancestor, or skips the test.
func Dir(t testing.TB) string {
	t.Helper()
	return primustest.Recorded(t, "primus-config")
}

// Case is one line of any of the fixture files.
type Case struct {
	Name      string            `json:"name"`
	Doc       string            `json:"doc"`
	Text      string            `json:"text"`
	Type      string            `json:"type"`
	Path      string            `json:"path"`
	Tokens    []string          `json:"tokens"`
	Overrides []string          `json:"overrides"`
	Env       map[string]string `json:"env"`
	Files     map[string]string `json:"files"`
	Error     string            `json:"error"`
	Result    any               `json:"result"`
}

// Decode decodes JSON and keeps its numbers as they are written.
func Decode(t *testing.T, data []byte, into any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(into))
}

// Cases reads the lines of a fixture file.
func Cases(t *testing.T, file string) []Case {
	t.Helper()
	var cases []Case
	primustest.EachLine(t, filepath.Join(Dir(t), file), func(line []byte) {
		var c Case
		Decode(t, line, &c)
		cases = append(cases, c)
	})
	return cases
}

// Inputs extracts the recorded experiments and presets and returns their directory.
func Inputs(t testing.TB) string {
	t.Helper()
	return primustest.Unpack(t, filepath.Join(Dir(t), "inputs.tar.gz"))
}

// Environment is the environment of the recording plus extra variables.
func Environment(extra map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := extra[name]
		if !ok && name == "HOME" {
			return "/nonexistent", true
		}
		return value, ok
	}
}

// Mismatch compares a recorded JSON value with ours and names the first difference.
func Mismatch(want any, got document.Value, path string) error {
	fail := func() error { return fmt.Errorf("%s: want %v, got %s %v", path, want, got.Kind(), got) }
	switch want := want.(type) {
	case json.Number:
		if !sameNumber(want.String(), got) {
			return fail()
		}
	case []any:
		items, ok := got.List()
		if !ok || len(items) != len(want) {
			return fail()
		}
		for i := range want {
			if err := Mismatch(want[i], items[i], fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	case map[string]any:
		if kind, ok := want["$type"]; ok {
			return special(kind, want, got, path)
		}
		m, ok := got.Map()
		if !ok {
			return fail()
		}
		for key, value := range want {
			ours, ok := m.Lookup(key)
			if !ok {
				return fmt.Errorf("%s: missing", document.JoinPath(path, key))
			}
			if err := Mismatch(value, ours, document.JoinPath(path, key)); err != nil {
				return err
			}
		}
		for key := range m.All() {
			if _, ok := want[key]; !ok {
				return fmt.Errorf("%s: not expected", document.JoinPath(path, key))
			}
		}
	default:
		if kind := got.Kind(); kind != document.KindString && kind != document.KindBool && kind != document.KindNull || want != got.Any() {
			return fail()
		}
	}
	return nil
}

func sameNumber(want string, got document.Value) bool {
	if strings.ContainsAny(want, ".eE") {
		number := json.Number(want)
		f, err := number.Float64()
		return err == nil && got.Kind() == document.KindFloat && f == got.Any()
	}
	n, ok := new(big.Int).SetString(want, 10)
	ours, err := document.FromGo(n)
	return ok && err == nil && got.Equal(ours)
}

// special compares what JSON cannot hold. Tuples and sets are lists here.
func special(kind any, want map[string]any, got document.Value, path string) error {
	same := false
	switch kind {
	case "date":
		same = got.Kind() == document.KindDate && got.Any() == want["value"]
	case "datetime":
		same = got.Kind() == document.KindTime && got.Any() == want["value"]
	case "bytes":
		data, err := hex.DecodeString(fmt.Sprint(want["value"]))
		same = err == nil && got.Kind() == document.KindBytes && reflect.DeepEqual(got.Any(), data)
	case "float":
		f, ok := got.Any().(float64)
		switch want["value"] {
		case "nan":
			same = ok && math.IsNaN(f)
		case "inf":
			same = ok && math.IsInf(f, 1)
		case "-inf":
			same = ok && math.IsInf(f, -1)
		}
	case "tuple", "set":
		return Mismatch(want["items"], got, path)
	}
	if !same {
		return fmt.Errorf("%s: want %v, got %s %v", path, want, got.Kind(), got)
	}
	return nil
}
