package data_test

import (
	"context"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/native/data"
	"github.com/primus-fl/primus/internal/native/data/corpus"
	"github.com/primus-fl/primus/internal/tokenizer"
)

// tree writes files below a new directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
	return root
}

// loadCorpus finds and loads a corpus.
func loadCorpus(ctx context.Context, s data.Settings) (*data.Tokens, data.Report, error) {
	corpus, err := data.Find(ctx, s)
	if err != nil {
		return nil, data.Report{}, err
	}
	return corpus.Load(ctx)
}

func load(t *testing.T, s data.Settings) (string, data.Report) {
	t.Helper()
	tokens, report, err := loadCorpus(t.Context(), s)
	require.NoError(t, err)
	ids := make([]int32, tokens.Len())
	require.NoError(t, tokens.Read(ids, 0))
	assert.Equal(t, tokens.Len(), report.Tokens)
	return string(tokenizer.Byte{}.Decode(nil, ids)), report
}

func TestCorpora(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{
		"b.txt":         "bb",
		"a/z.md":        "zz",
		"a/y":           "yy",
		".hidden/x.txt": "xx",
		".x":            "xx",
		"binary":        strings.Repeat("t", 8191) + "\x00",
		"late_nul":      strings.Repeat("t", 8192) + "\x00",
		"empty":         "",
	})
	require.NoError(t, os.Symlink(filepath.Join(root, "b.txt"), filepath.Join(root, "link")))
	link := filepath.Join(t.TempDir(), "corpus")
	require.NoError(t, os.Symlink(root, link))
	late := strings.Repeat("t", 8192) + "\x00"

	for _, tt := range []struct {
		name    string
		give    string
		want    string
		files   int
		skipped corpus.Skipped
	}{
		{"file", "b.txt", "bb", 1, corpus.Skipped{}},
		{"directory", "", "yy\n\nzz\n\nbb\n\n" + late, 4, corpus.Skipped{Hidden: 2, Binary: 1, Special: 1, Empty: 1}},
		{"glob of files", "a/*", "yy\n\nzz", 2, corpus.Skipped{}},
		{"glob with a directory", "[ab]*", "yy\n\nzz\n\nbb", 3, corpus.Skipped{Binary: 1}},
		{"glob skips hidden entries", "*.*", "bb", 1, corpus.Skipped{Hidden: 2}},
		{"glob of hidden entries", ".[x]", "xx", 1, corpus.Skipped{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, report := load(t, data.Settings{Settings: corpus.Settings{Path: filepath.Join(root, filepath.FromSlash(tt.give))}})
			assert.Equal(t, tt.want, got)
			assert.Equal(t, tt.files, report.Files)
			assert.Equal(t, tt.skipped, report.Skipped)
			assert.Equal(t, int64(len(tt.want)), report.Bytes)
			assert.False(t, report.Default)
			assert.False(t, report.Limited)
		})
	}
	t.Run("link to a directory", func(t *testing.T) {
		t.Parallel()
		_, report := load(t, data.Settings{Settings: corpus.Settings{Path: link}})
		assert.Equal(t, 4, report.Files)
	})
}

func TestAFileWhoseNameLooksLikeAGlob(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{"a[1].txt": "bracket", "a1.txt": "plain"})
	got, _ := load(t, data.Settings{Settings: corpus.Settings{Path: filepath.Join(root, "a[1].txt")}})
	assert.Equal(t, "bracket", got)
}

func TestBadCorpora(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{"empty/e": "", "binary": "\x00", ".hidden": "x", "file": "x"})
	require.NoError(t, os.Mkdir(filepath.Join(root, "bare"), 0o755))
	for _, tt := range []struct {
		name string
		give string
		want []string
	}{
		{"missing file", "absent.txt", []string{"absent.txt", "no such file", "want an existing file"}},
		{"glob without matches", "*.parquet", []string{"*.parquet", "matches no file"}},
		{"malformed glob", "[", []string{"syntax error in pattern"}},
		{"directory without text", "empty", []string{"empty holds no text: all in it was skipped, 1 empty; want files of text"}},
		{"directory without files", "bare", []string{"bare holds no text: it has no files; want files of text"}},
		{"binary file", "binary", []string{"holds no text", "1 binary"}},
		{"file as directory", "file/x", []string{"not a directory"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := loadCorpus(t.Context(), data.Settings{Settings: corpus.Settings{Path: filepath.Join(root, tt.give)}})
			require.Error(t, err)
			for _, want := range append(tt.want, "train_data_path") {
				assert.ErrorContains(t, err, want)
			}
		})
	}
	_, _, err := loadCorpus(t.Context(), data.Settings{Settings: corpus.Settings{Path: root, MaxBytes: -1}})
	assert.ErrorContains(t, err, "train_data_max_bytes: given -1")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = loadCorpus(cancelled, data.Settings{Settings: corpus.Settings{Path: root}})
	assert.ErrorIs(t, err, context.Canceled)
}

func TestUnreadableFile(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	root := tree(t, map[string]string{"a/secret.txt": "x"})
	require.NoError(t, os.Chmod(filepath.Join(root, "a", "secret.txt"), 0))
	_, _, err := loadCorpus(t.Context(), data.Settings{Settings: corpus.Settings{Path: root}})
	require.ErrorIs(t, err, os.ErrPermission)
	assert.ErrorContains(t, err, "secret.txt")
}

func TestALimitIsExactAndMixesFiles(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for _, c := range "abcdefghijklmnop" {
		files[string(c)+".txt"] = strings.Repeat(string(c), 100)
	}
	first, second := tree(t, files), tree(t, files)
	for _, limit := range []int64{1, 99, 100, 101, 102, 103, 555, 1629} {
		got, report := load(t, data.Settings{Settings: corpus.Settings{Path: first, MaxBytes: limit}})
		assert.LessOrEqual(t, int64(len(got)), limit)
		assert.GreaterOrEqual(t, int64(len(got)), limit-2, "only separators may be missing")
		assert.True(t, report.Limited)
		elsewhere, _ := load(t, data.Settings{Settings: corpus.Settings{Path: second, MaxBytes: limit}})
		assert.Equal(t, got, elsewhere, "the choice depends on relative names only")
	}
	mixed, _ := load(t, data.Settings{Settings: corpus.Settings{Path: first, MaxBytes: 510}})
	assert.NotEqual(t, "a", mixed[:1], "files come in the order of a hash")
	whole, report := load(t, data.Settings{Settings: corpus.Settings{Path: first, MaxBytes: 16 * 102}})
	assert.Len(t, whole, 16*102-2)
	assert.False(t, report.Limited)
}

func TestDefaultCorpusIsGoSource(t *testing.T) {
	t.Parallel()
	got, report := load(t, data.Settings{Settings: corpus.Settings{MaxBytes: 50_000}})
	assert.True(t, report.Default)
	assert.True(t, report.Limited)
	assert.Equal(t, "src", filepath.Base(report.Source))
	assert.Contains(t, got, "package ")
	assert.Contains(t, report.String(), "no train_data_path: training on the Go standard library's sources")
}

func TestCacheIsUsedAndRebuilt(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{"a.txt": "hello", "b.txt": "world"})
	dir := filepath.Join(t.TempDir(), "cache", "tokens")
	s := data.Settings{Settings: corpus.Settings{Path: root}, CacheDir: dir}

	got, report := load(t, s)
	assert.Equal(t, "hello\n\nworld", got)
	assert.False(t, report.FromCache)
	assert.Contains(t, report.String(), "cached in "+dir)
	require.FileExists(t, report.CachePath)

	got, again := load(t, s)
	assert.Equal(t, "hello\n\nworld", got)
	assert.True(t, again.FromCache)
	assert.Contains(t, again.String(), "read from "+again.CachePath)
	again.FromCache = false
	assert.Equal(t, report, again)

	// A changed file, another limit and another tokenizer miss the cache.
	now := time.Now().Add(time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(root, "a.txt"), now, now))
	_, changed := load(t, s)
	assert.False(t, changed.FromCache)
	assert.NotEqual(t, report.CachePath, changed.CachePath)
	_, limited := load(t, data.Settings{Settings: corpus.Settings{Path: root, MaxBytes: 4}, CacheDir: dir})
	assert.False(t, limited.FromCache)
	tokens, other, err := loadCorpus(t.Context(), data.Settings{Settings: corpus.Settings{Path: root}, CacheDir: dir, Tokenizer: shifted{}})
	require.NoError(t, err)
	assert.False(t, other.FromCache)
	ids := make([]int32, 2)
	require.NoError(t, tokens.Read(ids, 1))
	assert.Equal(t, []int32{'e' + 1000, 'l' + 1000}, ids)
	tokens, other, err = loadCorpus(t.Context(), data.Settings{Settings: corpus.Settings{Path: root}, CacheDir: dir, Tokenizer: shifted{}})
	require.NoError(t, err)
	assert.True(t, other.FromCache)
	require.NoError(t, tokens.Read(ids, 1))
	assert.Equal(t, []int32{'e' + 1000, 'l' + 1000}, ids)
}

// A cache remembers how many lines were left out, and serves only those who ask for the same.
func TestBadLinesAndTheCache(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{"a.jsonl": "{\"text\": \"hello\"}\nno\n{\"text\": \"world\"}\n"})
	s := data.Settings{Settings: corpus.Settings{Path: root, OnBad: corpus.BadSkip}, CacheDir: t.TempDir()}
	for _, fromCache := range []bool{false, true} {
		got, report := load(t, s)
		assert.Equal(t, "hello\n\nworld", got)
		assert.Equal(t, fromCache, report.FromCache)
		assert.Equal(t, 1, report.Bad.Records)
		assert.Equal(t, !fromCache, len(report.Bad.First) == 1)
	}
	s.Verify = true
	_, report := load(t, s)
	assert.Contains(t, report.Bad.String(), "a.jsonl: line 2 (byte 18): ")
	assert.Empty(t, report.Warnings)
	s.Verify, s.CacheDir = false, ""
	_, report = load(t, s)
	assert.Equal(t, 1, report.Bad.Records)
	s.OnBad = ""
	_, _, err := loadCorpus(t.Context(), s)
	assert.ErrorContains(t, err, "line 2")
}

// A file that was changed without a change of its size and time is noticed by its blocks, or by
// reading it whole.
func TestACorpusThatWasChangedInPlace(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("hello world\n", 10_000)
	root := tree(t, map[string]string{"a.txt": long})
	path := filepath.Join(root, "a.txt")
	info, err := os.Stat(path)
	require.NoError(t, err)
	change := func(at int) string {
		changed := long[:at] + "X" + long[at+1:]
		require.NoError(t, os.WriteFile(path, []byte(changed), 0o644))
		require.NoError(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
		return changed
	}
	s := data.Settings{Settings: corpus.Settings{Path: root}, CacheDir: t.TempDir()}
	load(t, s)
	changed := change(len(long) - 1)
	got, report := load(t, s)
	assert.Equal(t, changed, got)
	assert.False(t, report.FromCache)

	change(len(long) / 4) // which is in none of the blocks
	s.CacheDir = t.TempDir()
	load(t, s)
	changed = change(len(long)/4 + 1)
	got, report = load(t, s)
	assert.NotEqual(t, changed, got)
	assert.True(t, report.FromCache)
	s.Verify = true
	got, report = load(t, s)
	assert.Equal(t, changed, got)
	assert.False(t, report.FromCache)
	require.Len(t, report.Warnings, 1)
	assert.Contains(t, report.Warnings[0], "verify_data: the token cache "+report.CachePath+" held tokens=120000 crc32c=")
	s.Verify = false
	got, report = load(t, s)
	assert.Equal(t, changed, got, "the cache is written again")
	assert.True(t, report.FromCache)
}

// shifted has a vocabulary that needs two bytes.
type shifted struct{ tokenizer.Byte }

func (shifted) Name() string { return "shifted" }

func (shifted) VocabSize() int { return 1256 }

func (s shifted) Encode(dst []int32, text []byte) []int32 {
	from := len(dst)
	dst = s.Byte.Encode(dst, text)
	for i := range dst[from:] {
		dst[from+i] += 1000
	}
	return dst
}

// liar says a smaller vocabulary than it uses.
type liar struct{ shifted }

func (liar) VocabSize() int { return 1000 }

func TestATokenizerThatLies(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{"a.txt": "x"})
	_, _, err := loadCorpus(t.Context(), data.Settings{Settings: corpus.Settings{Path: root}, Tokenizer: liar{}})
	require.ErrorContains(t, err, "id 1120, want 0 to 999")
}

func TestADamagedCacheIsRebuilt(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{"a.txt": "hello"})
	s := data.Settings{Settings: corpus.Settings{Path: root}, CacheDir: t.TempDir()}
	_, report := load(t, s)
	good, err := os.ReadFile(report.CachePath)
	require.NoError(t, err)

	damaged := map[string][]byte{
		"empty":     {},
		"truncated": good[:len(good)-1],
		"header":    good[:63],
		"longer":    append(append([]byte{}, good...), 0),
	}
	for i := range good {
		flipped := append([]byte{}, good...)
		flipped[i] ^= 0x10
		damaged["byte "+hex.EncodeToString([]byte{byte(i)})] = flipped
	}
	for name, content := range damaged {
		require.NoError(t, os.WriteFile(report.CachePath, content, 0o644))
		got, rebuilt := load(t, s)
		assert.Equal(t, "hello", got, name)
		assert.False(t, rebuilt.FromCache, name)
		if assert.Len(t, rebuilt.Warnings, 1, name) {
			assert.Contains(t, rebuilt.Warnings[0], "built again", name)
		}
		again, err := os.ReadFile(report.CachePath)
		require.NoError(t, err)
		assert.Equal(t, good, again, name)
	}
}

func TestACacheThatCannotBeWrittenIsAWarning(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{"a.txt": "hello"})
	got, report := load(t, data.Settings{Settings: corpus.Settings{Path: root}, CacheDir: filepath.Join(root, "a.txt", "cache")})
	assert.Equal(t, "hello", got)
	assert.Empty(t, report.CachePath)
	require.NotEmpty(t, report.Warnings)
	assert.Contains(t, report.Warnings[len(report.Warnings)-1], syscall.ENOTDIR.Error())
}

// A corpus goes to the cache part by part and is mapped from there, so that it takes no memory of
// its size.
func TestALargeCorpusTakesNoMemory(t *testing.T) {
	const size = 64 << 20
	if runtime.GOOS == "windows" {
		t.Skip("files are read whole on this system")
	}
	path := filepath.Join(t.TempDir(), "large.txt")
	line := []byte(strings.Repeat("abcdefg ", 8<<10))
	f, err := os.Create(path)
	require.NoError(t, err)
	for range size / len(line) {
		_, err := f.Write(line)
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
	s := data.Settings{Settings: corpus.Settings{Path: path}, CacheDir: t.TempDir()}
	for _, fromCache := range []bool{false, true} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		tokens, report, err := loadCorpus(t.Context(), s)
		require.NoError(t, err)
		runtime.ReadMemStats(&after)
		assert.Equal(t, fromCache, report.FromCache)
		assert.Equal(t, size, tokens.Len())
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(size/2))
		require.NoError(t, tokens.Close())
	}
}

// When somebody makes the cache shorter while it is read, reading is an error and not the end of
// the process.
func TestACacheThatIsCutWhileItIsMapped(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("files are read whole on this system")
	}
	root := tree(t, map[string]string{"a.txt": strings.Repeat("x", 1<<20)})
	tokens, report, err := loadCorpus(t.Context(), data.Settings{Settings: corpus.Settings{Path: root}, CacheDir: t.TempDir()})
	require.NoError(t, err)
	set, err := data.NewSet(tokens, data.SplitSettings{SeqLength: 16})
	require.NoError(t, err)
	sampler, batch := data.NewSampler(set.Train(), 1), make([]int32, 17*64)
	require.NoError(t, sampler.Batch(batch))
	require.NoError(t, os.Truncate(report.CachePath, 0))
	assert.ErrorContains(t, sampler.Batch(batch), "the token cache can no longer be read")
	require.NoError(t, tokens.Close())
}
