package preflight

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/primus-fl/primus/internal/durable"
)

// Node is the verdict on a node, which every node writes into a directory that all of them share.
type Node struct {
	Host        string   `json:"host"`
	NodeRank    int      `json:"node_rank"`
	Status      string   `json:"status"` // PASS or FAIL
	FailReasons []string `json:"fail_reasons"`
	Report      *Report  `json:"report,omitempty"`
}

const (
	pass = "PASS"
	fail = "FAIL"
)

// Passed reports whether the node may be used.
func (n Node) Passed() bool { return n.Status == pass }

// Judge returns the verdict of a report: one failed check fails the node.
func Judge(r *Report, rank int) Node {
	n := Node{Host: shortName(r.Host), NodeRank: rank, Status: pass, FailReasons: []string{}, Report: r}
	for _, c := range r.Checks {
		if c.Status == Fail {
			n.Status = fail
			n.FailReasons = append(n.FailReasons, fmt.Sprintf("%s: %s: %s", c.Name, c.Value, c.Advice))
		}
	}
	return n
}

// shortName is a host without its domain, as Slurm names it.
func shortName(host string) string {
	name, _, _ := strings.Cut(host, ".")
	return name
}

// Names of the files below the directory.
const (
	nodeDir      = "smoke"
	passingFile  = "passing_nodes.txt"
	failingFile  = "failing_nodes.txt"
	expectedFile = "expected_nodes.txt"
	ReportFile   = "smoke_report.md"
)

// WriteNode writes a verdict to DIR/smoke/HOST.json.
func WriteNode(dir string, n Node) error {
	if err := os.MkdirAll(filepath.Join(dir, nodeDir), 0o755); err != nil {
		return durable.Explain(err)
	}
	return durable.WriteFile(filepath.Join(dir, nodeDir, n.Host+".json"), func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(n)
	})
}

// RemoveStale removes the verdicts of an earlier run from a directory, and the files made from
// them. Verdicts that are not older than age stay: other nodes of this run may have written them.
func RemoveStale(dir string, age time.Duration) error {
	for _, file := range staleFiles(dir, age) {
		if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
			return durable.Explain(err)
		}
	}
	return nil
}

func staleFiles(dir string, age time.Duration) []string {
	var stale []string
	files, _ := filepath.Glob(filepath.Join(dir, nodeDir, "*.json"))
	for _, name := range []string{passingFile, failingFile, expectedFile, ReportFile} {
		files = append(files, filepath.Join(dir, name))
	}
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && time.Since(info.ModTime()) > age {
			stale = append(stale, file)
		}
	}
	return stale
}

// Expected says which nodes a run has. Without names their number alone counts, and without both
// the nodes that have reported.
type Expected struct {
	Count int
	Hosts []string
}

// pollInterval is how often the directory is read.
const pollInterval = 200 * time.Millisecond

// WaitForNodes returns the verdicts in a directory once all expected nodes have written one, or
// what is there after the timeout, with a failed verdict for every node that is missing.
func WaitForNodes(ctx context.Context, dir string, want Expected, timeout time.Duration) ([]Node, error) {
	count := max(want.Count, len(want.Hosts))
	deadline := time.After(timeout)
	for {
		nodes, err := readNodes(dir)
		if err != nil {
			return nil, err
		}
		nodes = slices.DeleteFunc(nodes, func(n Node) bool { return len(want.Hosts) > 0 && !slices.Contains(want.Hosts, n.Host) })
		if len(nodes) >= count {
			return nodes, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-deadline:
			return append(nodes, absent(nodes, want, timeout)...), nil
		case <-time.After(pollInterval):
		}
	}
}

// maxNodeFile bounds the verdict of a node.
const maxNodeFile = 16 << 20

func readNodes(dir string) ([]Node, error) {
	files, err := filepath.Glob(filepath.Join(dir, nodeDir, "*.json"))
	if err != nil {
		return nil, err
	}
	var nodes []Node
	for _, file := range files {
		text, err := durable.ReadRegular(file, maxNodeFile)
		if err != nil {
			return nil, durable.Explain(err)
		}
		host := strings.TrimSuffix(filepath.Base(file), ".json")
		n, fault := Node{}, ""
		if err := json.Unmarshal(text, &n); err != nil {
			fault = err.Error()
		} else if n.Host != host {
			fault = fmt.Sprintf("given the verdict of host %q, want that of %q", n.Host, host)
		}
		if fault != "" {
			n = Node{Host: host, Status: fail, FailReasons: []string{"its file cannot be read: " + fault}}
		}
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b Node) int { return cmp.Or(cmp.Compare(a.NodeRank, b.NodeRank), cmp.Compare(a.Host, b.Host)) })
	return nodes, nil
}

// absent returns failed verdicts for nodes that have written nothing.
func absent(nodes []Node, want Expected, timeout time.Duration) []Node {
	reason := fmt.Sprintf("no verdict within %v: the node may hang, or does not share the directory", timeout)
	var list []Node
	for _, host := range want.Hosts {
		if !slices.ContainsFunc(nodes, func(n Node) bool { return n.Host == host }) {
			list = append(list, Node{Host: host, NodeRank: -1, Status: fail, FailReasons: []string{reason}})
		}
	}
	for i := len(nodes) + len(list); i < want.Count; i++ {
		list = append(list, Node{NodeRank: -1, Status: fail, FailReasons: []string{reason}})
	}
	return list
}

// WriteLists writes the names of the nodes that passed, of those that failed and of those that were
// expected, one per line, for srun --nodelist and --exclude. Names that are more than a word are
// left out.
func WriteLists(dir string, nodes []Node, want Expected) error {
	lists := map[string][]string{passingFile: nil, failingFile: nil}
	for _, n := range nodes {
		switch {
		case len(strings.Fields(n.Host)) != 1 || strings.ContainsFunc(n.Host, unicode.IsControl):
		case n.Passed():
			lists[passingFile] = append(lists[passingFile], n.Host)
		default:
			lists[failingFile] = append(lists[failingFile], n.Host)
		}
	}
	if len(want.Hosts) > 0 {
		lists[expectedFile] = want.Hosts
	}
	for name, hosts := range lists {
		var text string
		for _, host := range hosts {
			text += host + "\n"
		}
		err := durable.WriteFile(filepath.Join(dir, name), func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Drift compares the reports of nodes as [Compare] does those of ranks, and their clocks by the
// times at which they wrote them.
func Drift(nodes []Node, l Limits) []Check {
	var reports []*Report
	for _, n := range nodes {
		if n.Report != nil {
			n.Report.Rank = n.NodeRank
			reports = append(reports, n.Report)
		}
	}
	checks := Compare(reports, l)
	if len(reports) < 2 || l.ClockSkew == 0 {
		return checks
	}
	byTime := func(a, b *Report) int { return a.Time.Compare(b.Time) }
	first, last := slices.MinFunc(reports, byTime), slices.MaxFunc(reports, byTime)
	if apart := last.Time.Sub(first.Time); apart > l.ClockSkew {
		checks = append(checks, Check{
			Cluster, "clock", Warn, fmt.Sprintf("%s is %v behind %s", first.Host, apart.Round(time.Second), last.Host), "synchronise the clocks, if the nodes began at the same time",
		})
	}
	return checks
}
