package corpus

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// badLines are lines without a document, with what is said of them.
var badLines = map[string]string{
	"{oops}":                    "want a JSON object",
	`[1]`:                       "want a JSON object",
	`{"text": 7}`:               `key "text": given 7, want a string`,
	`{"other": "x"}`:            `the object has no key "text"`,
	"{\"text\": \"a\xffb\"}":    "given the byte 0xff, want UTF-8",
	`{"text": "\ud800 alone"}`:  "half of a surrogate pair",
	`{"text": "cut`:             "unexpected end",
	`{"text": "x"} {"text": 1}`: "after top-level value",
}

// A bad line among good ones is an error with its place, or is left out and counted.
func TestBadLines(t *testing.T) {
	t.Parallel()
	good := []string{`{"text": "one"}`, `{"text": "two"}`, `{"text": "three"}`}
	for bad, want := range badLines {
		for at := range len(good) + 1 {
			lines := append(append(append([]string(nil), good[:at]...), bad), good[at:]...)
			path := filepath.Join(t.TempDir(), "lines.jsonl")
			require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644))
			place := path + ": line " + strconv.Itoa(at+1) + " (byte " + strconv.Itoa(len(strings.Join(append(good[:at:at], ""), "\n"))) + "): "
			for _, onBad := range []OnBad{"", BadError, BadSkip} {
				c, err := Find(t.Context(), Settings{Path: path, OnBad: onBad})
				require.NoError(t, err)
				for range 2 { // the count is that of one reading
					var got []string
					err = c.Read(t.Context(), func(p Piece) error {
						got = append(got, string(p.Text))
						return nil
					})
					if onBad != BadSkip {
						require.ErrorContains(t, err, place)
						require.ErrorContains(t, err, want)
						continue
					}
					require.NoError(t, err)
					require.Equal(t, []string{"one", "two", "three"}, got)
					require.Equal(t, 1, c.Bad().Records)
					require.Len(t, c.Bad().First, 1)
					require.Contains(t, c.Bad().First[0], place)
					require.Contains(t, c.Bad().String(), want)
				}
			}
		}
	}
}

// A row of a Parquet file whose text is not UTF-8 is an error with its place, or is left out and
// counted.
func TestBadRows(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(filepath.Join("..", "parquet", "testdata", "dict_none_v1.parquet"))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "rows.parquet")
	read := func(content []byte, onBad OnBad) (all []string, bad Bad, err error) {
		require.NoError(t, os.WriteFile(path, content, 0o644))
		c, err := Find(t.Context(), Settings{Path: path, OnBad: onBad})
		require.NoError(t, err)
		err = c.Read(t.Context(), func(p Piece) error {
			all = append(all, string(p.Text))
			return nil
		})
		return all, c.Bad(), err
	}
	whole, bad, err := read(content, BadError)
	require.NoError(t, err)
	assert.Len(t, whole, 240, "a row in five has no text")
	assert.Equal(t, Bad{Empty: 60}, bad)
	damaged := bytes.Replace(content, []byte("value 3"), []byte("val\xffe 3"), 1) // in the first dictionary
	varint := func(checksum uint32) []byte { return binary.AppendVarint(nil, int64(int32(checksum))) }
	damaged = bytes.Replace(damaged, varint(0xf688a52b), varint(0x5342d9aa), 1) // of that page
	require.Len(t, damaged, len(content))
	place := path + ": row 4: byte 4 of the text: given the byte 0xff, want UTF-8"
	_, _, err = read(damaged, BadError)
	require.ErrorContains(t, err, place)
	left, bad, err := read(damaged, BadSkip)
	require.NoError(t, err)
	assert.Greater(t, bad.Records, namedBad)
	gone := 0 // the rows with that text, of the first group
	want := slices.DeleteFunc(slices.Clone(whole), func(text string) bool {
		if text == "value 3" {
			gone++
		}
		return text == "value 3" && gone <= bad.Records
	})
	assert.Equal(t, want, left)
	assert.Len(t, bad.First, namedBad)
	assert.Equal(t, place, bad.First[0])
	_, _, err = read(content[:len(content)-1], BadSkip)
	require.Error(t, err, "a file that is damaged")
}

// Of many bad lines all are counted and the first ones are named.
func TestManyBadLines(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lines.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("no\n{\"text\": \"x\"}\n", 1000)), 0o644))
	c, err := Find(t.Context(), Settings{Path: path, OnBad: BadSkip})
	require.NoError(t, err)
	documents := 0
	require.NoError(t, c.Read(t.Context(), func(Piece) error { documents++; return nil }))
	assert.Equal(t, 1000, documents)
	assert.Equal(t, 1000, c.Bad().Records)
	assert.Len(t, c.Bad().First, namedBad)
	assert.Contains(t, c.Bad().String(), "left out (on_bad_record=skip): 1000: "+path+": line 1 (byte 0)")
}

// An end of the context is not a bad line, and neither is a fault of who reads.
func TestOnlyLinesAreLeftOut(t *testing.T) {
	t.Parallel()
	var b Bad
	ctx, cancel := context.WithCancel(t.Context())
	assert.NoError(t, BadSkip.Skip(ctx, &b, assert.AnError))
	cancel()
	assert.ErrorIs(t, BadSkip.Skip(ctx, &b, assert.AnError), assert.AnError)
	assert.Equal(t, 1, b.Records)
	path := filepath.Join(t.TempDir(), "lines.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(`{"text": "x"}`), 0o644))
	c, err := Find(t.Context(), Settings{Path: path, OnBad: BadSkip})
	require.NoError(t, err)
	assert.ErrorIs(t, c.Read(t.Context(), func(Piece) error { return assert.AnError }), assert.AnError)
}

// A line beyond the limit does not take memory of its size, and what follows it is read.
func TestLongLines(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		size int
		fits bool
	}{{PieceSize - 1, true}, {PieceSize, true}, {3 * PieceSize, true}, {5 * PieceSize, false}, {50 * PieceSize, false}} {
		var sizes []int
		var places []string
		content := "first\n" + strings.Repeat("x", tt.size) + "\nlast"
		require.NoError(t, lines(t.Context(), "f", strings.NewReader(content), 4*PieceSize, func(l Line) error {
			sizes = append(sizes, len(l.Text))
			if err := l.At(l.Check()); err != nil {
				places = append(places, err.Error())
			}
			return nil
		}))
		if tt.fits {
			assert.Equal(t, []int{5, tt.size, 4}, sizes)
			assert.Empty(t, places)
			continue
		}
		assert.Equal(t, []int{5, 0, 4}, sizes)
		assert.Equal(t, []string{"f: line 2 (byte 6): the line is longer than 524288 bytes: the file may not be one of JSON lines"}, places)
	}
}

// Every change of a file is told, and nothing of files that are as they were.
func TestChanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, content string, at time.Time) {
		require.NoError(t, os.WriteFile(path(name), []byte(content), 0o644))
		require.NoError(t, os.Chtimes(path(name), at, at))
	}
	then := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	long := strings.Repeat("a line\n", 10_000)
	names := []string{"gone", "larger", "same", "touched", "first", "middle", "last"}
	paths := make([]string, len(names))
	for i, name := range names {
		write(name, long, then)
		paths[i] = path(name)
	}
	before, err := Describe(paths)
	require.NoError(t, err)
	again, err := Describe(paths)
	require.NoError(t, err)
	assert.Empty(t, Changes(before, again))
	write("larger", long+"x", then)
	write("touched", long, then.Add(time.Second))
	write("new", "", then)
	for name, at := range map[string]int{"first": 0, "middle": len(long) / 2, "last": len(long) - 1} {
		write(name, long[:at]+"X"+long[at+1:], then)
	}
	now, err := Describe(append(paths[1:len(paths):len(paths)], path("new")))
	require.NoError(t, err)
	other := " has other content of the same size, of 2026-01-02 03:04:05"
	assert.Equal(t, []string{
		path("larger") + " has 70001 bytes, it had 70000", path("touched") + " was written at 2026-01-02 03:04:06",
		path("first") + other, path("middle") + other, path("last") + other, path("new") + " is new", path("gone") + " is gone",
	}, Changes(before, now))
	_, err = Describe([]string{path("none")})
	assert.ErrorContains(t, err, "none")
}
