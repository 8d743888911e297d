package parquet_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/native/data/parquet"

	"github.com/primus-fl/primus/internal/primustest"
)

// The files in testdata have 300 rows and were written with parquet-go 0.32, for each kind of page,
// compression and encoding.

func read(t *testing.T, b []byte, column string) ([]string, error) {
	f, err := parquet.Open(t.Context(), bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, err
	}
	var all []string
	err = f.Texts(t.Context(), column, func(text []byte) error {
		if text == nil {
			all = append(all, "null")
		} else {
			all = append(all, "="+string(text))
		}
		return nil
	})
	return all, err
}

// wanted returns the values of a column of a file.
func wanted(name, column string) (all []string) {
	for i := range 300 {
		text := fmt.Sprintf("=document %d: %s", i, strings.Repeat("wörd ", i%7))
		switch {
		case column == "meta.title" && i%4 != 0, strings.HasPrefix(name, "dict") && column == "text" && i%5 == 0, strings.HasPrefix(name, "deltaopt") && i%3 == 0:
			text = "null"
		case column == "meta.title":
			text = fmt.Sprintf("=title %d", i)
		case strings.HasPrefix(name, "dict"):
			text = fmt.Sprintf("=value %d", i%11)
		}
		all = append(all, text)
	}
	return all
}

func TestFilesOfAnotherWriter(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/*_v*.parquet")
	require.NoError(t, err)
	require.Len(t, names, 10)
	for _, path := range names {
		name := filepath.Base(path)
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		got, err := read(t, b, "text")
		require.NoError(t, err, name)
		assert.Equal(t, wanted(name, "text"), got, name)
		if strings.HasPrefix(name, "dict") {
			got, err = read(t, b, "meta.title")
			require.NoError(t, err, name)
			assert.Equal(t, wanted(name, "meta.title"), got, name)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	good, err := os.ReadFile("testdata/dict_none_v1.parquet")
	require.NoError(t, err)
	lz4, err := os.ReadFile("testdata/lz4.parquet")
	require.NoError(t, err)
	edit := func(at int, v byte) []byte {
		b := bytes.Clone(good)
		if at < 0 {
			at += len(b)
		}
		b[at] = v
		return b
	}
	for name, tt := range map[string]struct {
		file         []byte
		column, want string
	}{
		"empty":             {nil, "text", "it has 0 bytes, want at least 12"},
		"no Parquet":        {bytes.Repeat([]byte("text"), 9), "text", `byte 32: given "text", want "PAR1"`},
		"cut":               {good[:len(good)-1], "text", `want "PAR1"`},
		"encrypted":         {edit(-1, 'E'), "text", "it is encrypted"},
		"long description":  {edit(-5, 0x7f), "text", "given a description of"},
		"short description": {edit(-8, 9), "text", "the description of the file"},
		"no column":         {good, "body", `it has no column "body" of text, it has text, meta.title: name the column of the text with text_key`},
		"a number":          {good, "id", `no column "id" of text`},
		"a list":            {good, "tags.list.element", `of text`},
		"compression":       {lz4, "text", "its compression is LZ4_RAW, want UNCOMPRESSED, SNAPPY, GZIP or ZSTD"},
	} {
		_, err := read(t, tt.file, tt.column)
		assert.ErrorContains(t, err, tt.want, name)
	}
	f, err := parquet.Open(t.Context(), bytes.NewReader(good), int64(len(good)))
	require.NoError(t, err)
	stop := errors.New("stop")
	require.Equal(t, stop, errors.Unwrap(f.Texts(t.Context(), "text", func([]byte) error { return stop })))
}

// A changed bit is an error, or it lies in another column or changes a text, but never a panic.
func TestDamagedPages(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"plain_snappy_v2", "dict_gzip_v2", "delta_none_v2", "deltaopt_zstd_v2"} {
		b, err := os.ReadFile("testdata/" + name + ".parquet")
		require.NoError(t, err)
		faults := 0
		for at := 4; at < len(b); at += 3 {
			damaged := bytes.Clone(b)
			damaged[at] ^= 0x20
			if _, err := read(t, damaged, "text"); err != nil {
				faults++
			}
		}
		assert.Greater(t, faults, len(b)/30, name)
	}
}

// FuzzParquet feeds any bytes: there is no panic, and an accepted file has as many values as rows.
func FuzzParquet(f *testing.F) {
	names, err := filepath.Glob("testdata/*.parquet")
	require.NoError(f, err)
	for _, name := range names {
		b, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer primustest.Measured(t, len(b))()
		file, err := parquet.Open(t.Context(), bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		for _, column := range file.Columns() {
			n := 0
			_ = file.Texts(t.Context(), column, func([]byte) error {
				if n++; n > 1<<20 {
					return errors.New("enough")
				}
				return nil
			})
		}
	})
}
