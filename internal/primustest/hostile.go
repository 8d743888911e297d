package primustest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Documented fails a test unless the page about reliability gives the number of hostile inputs of a
// kind as a row of its table.
func Documented(t testing.TB, kind string, n int) {
	t.Helper()
	page := filepath.Join(ModuleRoot(t), "docs", "explanation", "reliability.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if row := fmt.Sprintf("\n| %s | %d | ", kind, n); !strings.Contains(string(text), row) {
		t.Errorf("%s has no row that begins with %q", page, row[1:])
	}
}
