package command_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// guides are the tests that run the commands of pages other than console blocks, which
// TestConsoleExamples runs. A test named here runs every sh block of its page.
var guides = map[string]func(*testing.T){
	"README.md":                              TestReadme,
	"docs/tutorials/a-policy-for-a-fleet.md": TestPolicyForAFleet,
	"docs/howto/backends.md":                 TestBackendsCommands,
	"docs/howto/before-a-run.md":             TestBeforeARun,
	"docs/reference/compatibility.md":        TestCompatibilityCommands,
	"docs/howto/data.md":                     TestDataGuide,
	"docs/howto/debugging-numerics.md":       TestDebuggingGuide,
	"docs/tutorials/from-text-to-answers.md": TestFromTextToAnswers,
	"docs/howto/operations.md":               TestOperations,
	"docs/howto/patches.md":                  TestPatchesCommands,
	"docs/howto/scaling.md":                  TestScalingGuide,
	"docs/reference/service.md":              TestServiceGuide,
	"docs/howto/tokenizers.md":               TestTokenizersGuide,
	"docs/howto/tracking.md":                 TestTrackingGuide,
	"docs/howto/tuning.md":                   TestTuningGuide,
	"docs/tutorials/writing-a-backend.md":    TestDocuments,
	"docs/tutorials/writing-a-device.md":     TestDocuments,
	"docs/tutorials/writing-a-patch.md":      TestDocuments,
	"docs/tutorials/writing-a-vendor.md":     TestWritingAVendor,
}

// commandLine matches the first line of a block that a reader would type into a shell.
var commandLine = regexp.MustCompile(`^(\$ |(\w+=\S+ )*(bin/|\./)?(primus|make|go|curl|export|scripts/\S+|time) )`)

// pages returns the Markdown files of the project by their paths.
func pages(t *testing.T) map[string]string {
	t.Helper()
	root := filepath.Join("..", "..", "..")
	found := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "examples/*/*.md"} {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, name := range names {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			page, err := filepath.Rel(root, name)
			require.NoError(t, err)
			found[filepath.ToSlash(page)] = string(text)
		}
	}
	return found
}

// unclaimed returns what is wrong with the blocks of a page: commands that no test runs and that
// give no reason for it in the form "sh norun=REASON".
func unclaimed(page, text string) []string {
	var faults []string
	for _, b := range commandtest.Blocks(text) {
		if len(b.Lines) == 0 {
			continue
		}
		language, reason, skipped := strings.Cut(b.Language, " norun=")
		language, _, _ = strings.Cut(language, " ")
		switch {
		case skipped && len(strings.Fields(reason)) < 2:
			faults = append(faults, page+": "+b.Lines[0]+": norun without a reason")
		case skipped, language == "console":
		case language == "sh" && guides[page] == nil:
			faults = append(faults, page+": "+b.Lines[0]+": no test runs this page: add one to guides, make it a console block, or say norun=REASON")
		case language == "" && commandLine.MatchString(b.Lines[0]):
			faults = append(faults, page+": "+b.Lines[0]+": commands without a language: say console, sh, or sh norun=REASON")
		}
	}
	return faults
}

// Every command that a page shows is run by a test, or the page says why not.
func TestExamplesAreRun(t *testing.T) {
	t.Parallel()
	for page, text := range pages(t) {
		for _, fault := range unclaimed(page, text) {
			t.Error(fault)
		}
	}
	for page := range guides {
		assert.Contains(t, pages(t), page)
	}
}

func TestUnclaimed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"```sh\nmake\n```\n":                                  "no test runs this page",
		"```\n$ primus ops list\n```\n":                       "commands without a language",
		"```\nTE_FL_STRICT=1 primus policy show\n```\n":       "commands without a language",
		"```sh norun=etcd\nprimus fleet list\n```\n":          "norun without a reason",
		"```sh norun=needs an etcd\nprimus fleet list\n```\n": "",
		"```console\n$ primus ops list\n```\n":                "",
		"```\nextends: base.yaml\n```\n":                      "",
	} {
		faults := strings.Join(unclaimed("page.md", text), "\n")
		if want == "" {
			assert.Empty(t, faults, text)
		} else {
			assert.Contains(t, faults, want, text)
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^):]*?)(#[^)]*)?\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	mark    = regexp.MustCompile(`[^\w\- ]`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
)

// Links between pages lead to files and headings that exist.
func TestLinks(t *testing.T) {
	t.Parallel()
	all := pages(t)
	for page, text := range all {
		for _, parts := range link.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			target := page
			if parts[1] != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(page), parts[1]))
				_, err := os.Stat(filepath.Join("..", "..", "..", target))
				assert.NoError(t, err, "%s links to %s", page, parts[0])
			}
			if parts[2] == "" {
				continue
			}
			var anchors []string
			for _, h := range heading.FindAllStringSubmatch(all[target], -1) {
				anchors = append(anchors, anchorOf(h[1]))
			}
			assert.Contains(t, anchors, parts[2], "%s links to a heading of %s", page, target)
		}
	}
}

// The README is read at a glance.
func TestReadmeIsShort(t *testing.T) {
	t.Parallel()
	assert.LessOrEqual(t, strings.Count(pages(t)["README.md"], "\n"), 150)
}

// What the README says about other systems is on the pages that it names: every figure is in a
// section that its row links to.
func TestReadmeFigures(t *testing.T) {
	t.Parallel()
	all := pages(t)
	_, rows, found := strings.Cut(all["README.md"], "\n## Beside others\n")
	require.True(t, found)
	rows, _, _ = strings.Cut(rows, "\n\n-")
	figures := 0
	for row := range strings.Lines(rows) {
		cells := strings.Split(row, "|")
		if len(cells) != 5 || !link.MatchString(cells[3]) {
			continue
		}
		var said strings.Builder
		for _, parts := range link.FindAllStringSubmatch(cells[3], -1) {
			said.WriteString(sectionAt(all[parts[1]], parts[2]))
		}
		for _, figure := range regexp.MustCompile(`\d+(\.\d+)?`).FindAllString(cells[2], -1) {
			figures++
			assert.Regexp(t, `(^|[^\d.])`+regexp.QuoteMeta(figure)+`([^\d.]|\.\D|$)`, said.String(), "%s: not on the page that the row links to: %s", figure, cells[3])
		}
	}
	assert.GreaterOrEqual(t, figures, 5)
}

// sectionAt returns the part of a page below the heading that an anchor leads to, or all of it.
func sectionAt(page, anchor string) string {
	for _, at := range heading.FindAllStringSubmatchIndex(page, -1) {
		if anchorOf(page[at[2]:at[3]]) == anchor {
			section, _, _ := strings.Cut(page[at[1]:], "\n## ")
			return section
		}
	}
	return page
}

// anchorOf returns the anchor of a heading.
func anchorOf(title string) string {
	return "#" + strings.ReplaceAll(mark.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
}

// The code of the README is in the files that it names.
func TestReadmeListings(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	listings := 0
	for _, b := range commandtest.Blocks(pages(t)["README.md"]) {
		if b.Language == "go" || b.Language == "python" {
			listings++
			checkListing(t, root, b)
		}
	}
	assert.Equal(t, 2, listings)
}

// The index of docs leads to every page.
func TestIndexHasEveryPage(t *testing.T) {
	t.Parallel()
	all := pages(t)
	for page := range all {
		if name, ok := strings.CutPrefix(page, "docs/"); ok && name != "README.md" {
			assert.Contains(t, all["docs/README.md"], "]("+name, "docs/README.md links to %s", page)
		}
	}
}

// The folders and the files of the examples in CONTRIBUTING.md exist. A name without a folder is in
// the folder of the name before.
func TestContributingNamesFiles(t *testing.T) {
	t.Parallel()
	_, rows, found := strings.Cut(pages(t)["CONTRIBUTING.md"], "| what | files of the example |")
	require.True(t, found)
	rows, _, _ = strings.Cut(rows, "\n\n")
	files := 0
	for row := range strings.Lines(rows) {
		cells := strings.Split(row, "|")
		if len(cells) < 5 {
			continue
		}
		folder := ""
		for _, name := range regexp.MustCompile("`([\\w./]+/?[\\w.]*)`").FindAllStringSubmatch(cells[2]+cells[3], -1) {
			file := name[1]
			switch {
			case strings.Contains(file, "/"):
				folder = filepath.Dir(file)
			case strings.HasSuffix(file, ".go"):
				file = filepath.Join(folder, file)
			default:
				continue // a variable, or a name in a program
			}
			files++
			_, err := os.Stat(filepath.Join("..", "..", "..", file))
			assert.NoError(t, err, "CONTRIBUTING.md names %s", file)
		}
	}
	assert.GreaterOrEqual(t, files, 20)

	_, rows, found = strings.Cut(pages(t)["CONTRIBUTING.md"], "| folder | what it has |")
	require.True(t, found)
	rows, _, _ = strings.Cut(rows, "\n\n")
	for row := range strings.Lines(rows) {
		if cells := strings.Split(row, "|"); len(cells) == 4 {
			for _, folder := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
				assert.DirExists(t, filepath.Join("..", "..", "..", folder[1]))
			}
		}
	}
}
