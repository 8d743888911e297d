package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each line of the table of trust in SECURITY.md has tests that keep it, and there are such tests.
func TestPromisesHaveTests(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	require.NoError(t, err)
	promises, kept := promisesOf(string(text))
	require.NotEmpty(t, promises)
	for _, who := range promises {
		assert.NotEmpty(t, kept[who], "SECURITY.md: no test is named for %q", who)
	}
	sources := map[string]string{}
	for promise, tests := range kept {
		assert.NotEmpty(t, tests, "SECURITY.md: no test is named for %q", promise)
		for _, name := range tests {
			folder, function, ok := strings.Cut(name, ".")
			require.True(t, ok, "%s: given the test %q, want PACKAGE.TEST", promise, name)
			if _, read := sources[folder]; !read {
				files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*_test.go"))
				require.NoError(t, err)
				var all strings.Builder
				for _, file := range files {
					content, err := os.ReadFile(file)
					require.NoError(t, err)
					all.Write(content)
				}
				sources[folder] = all.String()
			}
			assert.True(t, strings.Contains(sources[folder], "\nfunc "+function+"("), "SECURITY.md: %s: there is no test %s", promise, name)
		}
	}
}

var quotedName = regexp.MustCompile("`([^`]+)`")

// promisesOf returns the first cells of the table of what parties may do, and the tests that the
// table of promises names, by the first cells.
func promisesOf(text string) (promises []string, tests map[string][]string) {
	tests = map[string][]string{}
	head := ""
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		switch {
		case len(cells) < 4:
			head = ""
		case head == "":
			head = strings.TrimSpace(cells[1])
		case strings.HasPrefix(cells[1], "-"):
		case head == "who":
			promises = append(promises, strings.TrimSpace(cells[1]))
		case head == "promise":
			first := strings.TrimSpace(cells[1])
			tests[first] = []string{}
			for _, name := range quotedName.FindAllStringSubmatch(cells[2], -1) {
				tests[first] = append(tests[first], name[1])
			}
		}
	}
	return promises, tests
}
