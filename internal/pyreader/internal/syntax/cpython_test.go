package syntax_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash/crc32"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/pyreader/internal/syntax"
)

// library returns the interpreter and every module of its standard library.
func library(t *testing.T) (python string, files []string) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed, to compare with")
	}
	out, err := exec.Command(python, "-c", "import sysconfig; print(sysconfig.get_paths()['stdlib'])").Output()
	require.NoError(t, err)
	dir := strings.TrimSpace(string(out))
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "site-packages" || d.Name() == "dist-packages") {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".py") && d.Type().IsRegular() {
			files = append(files, path)
		}
		return nil
	})
	require.NoError(t, err)
	if len(files) < 100 {
		t.Skipf("%s holds only %d modules", dir, len(files))
	}
	return python, files
}

// wholeLibrary is the variable that has TestCPython read every module, which takes a minute or two.
const wholeLibrary = "PYREADER_WHOLE_LIBRARY"

// TestCPython compares what is read of the modules of Python's standard library with what CPython
// reads: of every tenth one, or of all.
func TestCPython(t *testing.T) {
	t.Parallel()
	python, files := library(t)
	if os.Getenv(wholeLibrary) == "" {
		files = slices.DeleteFunc(files, func(file string) bool { return crc32.ChecksumIEEE([]byte(filepath.Base(file)))%10 != 0 })
	}
	for _, kind := range []string{"ast", "comments"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(python, "testdata/dump.py", kind)
			cmd.Stdin = strings.NewReader(strings.Join(files, "\n") + "\n")
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			cmd.Stderr = os.Stderr
			require.NoError(t, cmd.Start())
			both, onlyHere, onlyThere, neither := 0, 0, 0, 0
			lines := bufio.NewScanner(out)
			for _, file := range files {
				require.True(t, lines.Scan(), file)
				theirs := lines.Text()
				ours, err := dump(t, kind, file)
				refused := strings.HasPrefix(theirs, "!")
				switch sum := sha256.Sum256([]byte(ours)); {
				case err != nil && refused:
					neither++
				case err != nil:
					onlyThere++
					t.Logf("not read here: %v", err)
				case refused:
					onlyHere++
				case hex.EncodeToString(sum[:]) == theirs:
					both++
				default:
					assert.Fail(t, "another reading of "+file, firstDifference(t, python, kind, file, ours))
				}
			}
			require.NoError(t, cmd.Wait())
			t.Logf("%s: %d files read alike, %d only by CPython, %d only here, %d by neither", kind, both, onlyThere, onlyHere, neither)
			assert.Greater(t, both, len(files)*9/10)
		})
	}
}

func dump(t *testing.T, kind, file string) (string, error) {
	t.Helper()
	source, err := os.ReadFile(file)
	require.NoError(t, err)
	f, err := syntax.Parse(file, source, nil)
	if err != nil {
		return "", err
	}
	if kind == "comments" {
		return dumpComments(f), nil
	}
	return dumpAST(f), nil
}

// firstDifference returns the lines around the first difference of two dumps.
func firstDifference(t *testing.T, python, kind, file, ours string) string {
	t.Helper()
	theirs, err := exec.Command(python, "testdata/dump.py", kind, file).Output()
	require.NoError(t, err)
	a, b := strings.Split(ours, "\n"), strings.Split(string(bytes.TrimRight(theirs, "\n"))+"\n", "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			from := max(0, i-8)
			return "here:\n" + strings.Join(a[from:min(i+4, len(a))], "\n") + "\nCPython:\n" + strings.Join(b[from:min(i+4, len(b))], "\n")
		}
	}
	return "one is longer"
}
