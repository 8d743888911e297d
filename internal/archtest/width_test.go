package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// maxColumns bounds the lines of comments. Comments after code and examples may be longer.
const maxColumns = 100

// wide lists the files with comments that are still wider. Add none.
var wide = []string{
	"runtime/backends/torchtitan/jobconfig.go",
	"runtime/backends/torchtitan/job_test.go",
	"runtime/backends/torchtitan/job.go",
	"runtime/backends/megatronbridge/job.go",
	"runtime/backends/megatron/shim_test.go",
	"runtime/backends/megatron/patches_more.go",
	"runtime/backends/megatron/job.go",
	"runtime/backends/maxtext/yaml.go",
	"runtime/backends/maxtext/job.go",
	"runtime/backends/internal/python/shim.go",
	"runtime/backends/internal/python/report.go",
	"runtime/backends/internal/python/policy_test.go",
	"runtime/backends/internal/python/policy.go",
	"runtime/backends/internal/python/framework.go",
	"runtime/backends/internal/python/end_test.go",
	"runtime/backends/internal/python/doc.go",
	"cmd/primus/command/alerts_test.go",
	"cmd/primus/command/completion_linux_test.go",
	"cmd/primus/command/completion_test.go",
	"cmd/primus/command/dispatch_test.go",
	"cmd/primus/command/docs_operations_linux_test.go",
	"cmd/primus/command/docs_test.go",
	"cmd/primus/command/docs_vendor_test.go",
	"cmd/primus/command/end_to_end_test.go",
	"cmd/primus/command/export_test.go",
	"cmd/primus/command/helper_test.go",
	"cmd/primus/command/internal/experiments/options.go",
	"cmd/primus/command/internal/graph/app.go",
	"cmd/primus/command/internal/graph/plugins.go",
	"cmd/primus/command/main_test.go",
	"cmd/primus/command/man_test.go",
	"cmd/primus/command/ops/ops.go",
	"cmd/primus/command/ops_diff_test.go",
	"cmd/primus/command/plugins/build.go",
	"cmd/primus/command/plugins/build_go.go",
	"cmd/primus/command/plugins/probe.go",
	"cmd/primus/command/readme_test.go",
	"cmd/primus/command/recorded_test.go",
	"cmd/primus/command/root.go",
	"cmd/primus/command/signals.go",
	"cmd/primus/command/train/dry_run.go",
	"cmd/primus/command/train/train.go",
	"cmd/primus/command/usage_test.go",
	"opregistry/plan.go",
	"runtime/backends/megatron/adapter.go",
	"runtime/backends/megatron/patches.go",
	"runtime/backends/native/earlier_test.go",
	"runtime/launch/job.go",
	"runtime/launch/options.go",
	"runtime/launch/output.go",
	"runtime/launch/plan.go",
	"runtime/launch/run.go",
	"runtime/train/train_test.go",
	"vendors/plugin/plugin_test.go",
	"vendors/plugin/sandbox/isolate_test.go",
	"vendors/plugin/sandbox/sandbox_test.go",
}

// checkWidths returns the lines of a file that are comments of more than maxColumns columns.
func checkWidths(s source, text string) []string {
	var found []string
	lines := strings.Split(text, "\n")
	for _, group := range s.file.Comments {
		for _, comment := range group.List {
			n := s.fset.Position(comment.Pos()).Line
			line := lines[n-1]
			if columns := utf8.RuneCountInString(line); columns > maxColumns && strings.HasPrefix(strings.TrimSpace(line), "// ") {
				found = append(found, fmt.Sprintf("%s:%d: a comment of %d columns: wrap it at %d", s.where(), n, columns, maxColumns))
			}
		}
	}
	return found
}

func TestCommentWidths(t *testing.T) {
	t.Parallel()
	for _, s := range tree(t) {
		if slices.Contains(wide, s.where()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(s.where())))
		require.NoError(t, err)
		for _, violation := range checkWidths(s, string(text)) {
			t.Error(violation)
		}
	}
}

func TestCommentWidthsFindsViolations(t *testing.T) {
	t.Parallel()
	long := "// " + strings.Repeat("word ", 20)
	for text, want := range map[string]int{
		"package a\n\n" + long + "\nvar x int\n":              1,
		"package a\n\nvar x int " + long + "\n":               0,
		"package a\n\nvar x = `\n" + long + "\n`\n":           0,
		"package a\n\n" + long[:90] + "\nvar x int\n":         0,
		"package a\n\n//" + "\t" + long[3:] + "\nvar x int\n": 0,
	} {
		assert.Len(t, checkWidths(parse(t, "a/a.go", text), text), want, text)
	}
}
