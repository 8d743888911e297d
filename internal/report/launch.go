package report

import (
	"fmt"
	"strings"

	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/internal/plaintext"
)

// describeLaunch writes what training would start.
func describeLaunch(p *launch.Plan) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nprocesses: %d of %d run on this node, node %d of %d, by launcher %s\n\n", p.WorldSize/p.Nodes, p.WorldSize, p.NodeRank, p.Nodes, p.Launcher)
	for _, process := range p.Processes {
		fmt.Fprintf(&b, "  %s\n", p.Shell(process))
	}
	fmt.Fprintf(&b, "\ntheir output goes to %s\n", p.LogDir)
	for _, f := range p.Files {
		kind := "file"
		if f.Temporary {
			kind = "temporary file"
		}
		fmt.Fprintf(&b, "\n%s %s\n\n%s\n", kind, f.Path, plaintext.Indent(firstLines(f.Content)))
	}
	for _, note := range p.Notes {
		fmt.Fprintf(&b, "\nnote: %s\n", note)
	}
	return b.String()
}

// firstLines leaves out the rest of a program that is longer than what a person reads.
func firstLines(text string) string {
	const maxLines = 12
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) <= maxLines || !strings.HasPrefix(text, `"""`) {
		return text
	}
	return strings.Join(lines[:maxLines], "\n") + fmt.Sprintf("\n… %d more lines\n", len(lines)-maxLines)
}
