package corpus

import (
	"context"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// DefaultMaxBytes is the limit of the default corpus when none is given.
const DefaultMaxBytes = 16 << 20

const fallbackGoRoot = "/usr/local/go"

// findGoSource collects the Go standard library's sources: the .go files below GOROOT/src outside
// testdata. Where there are none it takes the documentation of the program.
func (f *finder) findGoSource(ctx context.Context) (root string, err error) {
	root = filepath.Join(goRoot(ctx), "src")
	info, err := os.Stat(root)
	if err != nil || !info.IsDir() {
		if root, err = providedText(); err != nil {
			return "", f.errorf("it is not set, the default corpus, the Go standard library's sources, is not here, and the next one, the documentation of this program, cannot be unpacked: %w", err)
		}
		return root, f.walk(ctx, root)
	}
	f.accept = func(rel string, isDir bool) bool {
		if isDir {
			return path.Base(rel) != "testdata"
		}
		return path.Ext(rel) == ".go"
	}
	return root, f.walk(ctx, root)
}

// goRoot asks the go command, because GOROOT is seldom set in the environment and the one of the
// build may not exist on this machine.
func goRoot(ctx context.Context) string {
	if out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output(); err == nil {
		if root := strings.TrimSpace(string(out)); root != "" {
			return root
		}
	}
	return fallbackGoRoot
}
