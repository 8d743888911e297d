// Package recordtest reads the recorded results of the ancestor for configurations, for tests that
// compare with them.
package recordtest

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/document"
)

// Dir returns the directory of the recorded behaviour of the ancestor, or skips the test.
func Dir(t testing.TB) string {
	t.Helper()
	shared := os.Getenv("PRIMUS_SHARED")
	if shared == "" {
		shared = filepath.Join(moduleRoot(t), "..", "shared")
	}
	dir := filepath.Join(shared, "fixtures", "primus-config")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("recorded fixtures are not here (set PRIMUS_SHARED): %v", err)
	}
	return dir
}

// moduleRoot returns the directory of go.mod, above the package under test.
func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		require.NotEqual(t, parent, dir, "no go.mod above the package under test")
		dir = parent
	}
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
	handle, err := os.Open(filepath.Join(Dir(t), file))
	require.NoError(t, err)
	defer handle.Close()
	var cases []Case
	scanner := bufio.NewScanner(handle)
	scanner.Buffer(nil, 1<<24)
	for scanner.Scan() {
		var c Case
		Decode(t, scanner.Bytes(), &c)
		cases = append(cases, c)
	}
	require.NoError(t, scanner.Err())
	return cases
}

// Inputs extracts the recorded experiments and presets and returns their directory.
func Inputs(t testing.TB) string {
	t.Helper()
	handle, err := os.Open(filepath.Join(Dir(t), "inputs.tar.gz"))
	require.NoError(t, err)
	defer handle.Close()
	compressed, err := gzip.NewReader(handle)
	require.NoError(t, err)
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		require.NoError(t, err)
		if header.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(archive)
		require.NoError(t, err)
		require.NoError(t, root.MkdirAll(filepath.Dir(header.Name), 0o755))
		require.NoError(t, root.WriteFile(header.Name, data, 0o644))
	}
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
