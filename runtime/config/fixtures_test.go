package config

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
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fixtureDir returns the directory of the recorded behaviour of the ancestor, or skips the test.
func fixtureDir(t testing.TB) string {
	t.Helper()
	shared := os.Getenv("PRIMUS_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "..", "shared")
	}
	dir := filepath.Join(shared, "fixtures", "primus-config")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("recorded fixtures are not here (set PRIMUS_SHARED): %v", err)
	}
	return dir
}

// fixtureCase is one line of any of the fixture files.
type fixtureCase struct {
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

func decodeNumbers(t *testing.T, data []byte, into any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(into))
}

func readCases(t *testing.T, file string) []fixtureCase {
	t.Helper()
	handle, err := os.Open(filepath.Join(fixtureDir(t), file))
	require.NoError(t, err)
	defer handle.Close()
	var cases []fixtureCase
	scanner := bufio.NewScanner(handle)
	scanner.Buffer(nil, 1<<24)
	for scanner.Scan() {
		var c fixtureCase
		decodeNumbers(t, scanner.Bytes(), &c)
		cases = append(cases, c)
	}
	require.NoError(t, scanner.Err())
	return cases
}

// unpackInputs extracts the recorded experiments and presets and returns their directory.
func unpackInputs(t testing.TB) string {
	t.Helper()
	handle, err := os.Open(filepath.Join(fixtureDir(t), "inputs.tar.gz"))
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

// fixtureEnv is the environment of the recording plus extra variables.
func fixtureEnv(extra map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := extra[name]
		if !ok && name == "HOME" {
			return "/nonexistent", true
		}
		return value, ok
	}
}

// mismatch compares a recorded JSON value with ours and names the first difference.
func mismatch(want any, got Value, path string) error {
	fail := func() error { return fmt.Errorf("%s: want %v, got %s %q", path, want, got.Kind(), got.canonical()) }
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
			if err := mismatch(want[i], items[i], fmt.Sprintf("%s[%d]", path, i)); err != nil {
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
				return fmt.Errorf("%s: missing", joinPath(path, key))
			}
			if err := mismatch(value, ours, joinPath(path, key)); err != nil {
				return err
			}
		}
		for key := range m.All() {
			if _, ok := want[key]; !ok {
				return fmt.Errorf("%s: not expected", joinPath(path, key))
			}
		}
	default:
		if want != got.data {
			return fail()
		}
	}
	return nil
}

func sameNumber(want string, got Value) bool {
	if strings.ContainsAny(want, ".eE") {
		number := json.Number(want)
		f, err := number.Float64()
		return err == nil && got.Kind() == KindFloat && f == got.data
	}
	n, ok := new(big.Int).SetString(want, 10)
	ours, isInt := got.integral()
	return ok && isInt && got.Kind() == KindInt && n.Cmp(ours) == 0
}

// special compares what JSON cannot hold. Tuples and sets are lists here.
func special(kind any, want map[string]any, got Value, path string) error {
	same := false
	switch kind {
	case "date":
		same = got.Kind() == KindDate && got.canonical() == want["value"]
	case "datetime":
		same = got.Kind() == KindTime && got.canonical() == want["value"]
	case "bytes":
		data, err := hex.DecodeString(fmt.Sprint(want["value"]))
		same = err == nil && got.Equal(Value{data: data})
	case "float":
		f, ok := got.data.(float64)
		switch want["value"] {
		case "nan":
			same = ok && math.IsNaN(f)
		case "inf":
			same = ok && math.IsInf(f, 1)
		case "-inf":
			same = ok && math.IsInf(f, -1)
		}
	case "tuple", "set":
		return mismatch(want["items"], got, path)
	}
	if !same {
		return fmt.Errorf("%s: want %v, got %s %q", path, want, got.Kind(), got.canonical())
	}
	return nil
}
