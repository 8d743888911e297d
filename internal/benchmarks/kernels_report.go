package main

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"gonum.org/v1/gonum/stat"
)

// kernelRow is the result of a case.
type kernelRow struct {
	Group    string  `json:"group"`
	Case     string  `json:"case"`
	Threads  int     `json:"threads"`
	Unit     string  `json:"unit"`
	Flagos   float64 `json:"flagos"`
	PeerName string  `json:"peer_name"`
	Peer     float64 `json:"peer,omitempty"`
	Ratio    float64 `json:"ratio,omitempty"`
	Absent   string  `json:"absent,omitempty"` // why there is no peer
}

func kernelTable(w io.Writer, rows []kernelRow) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "group\tcase\tthreads\tflagos\tpeer\tunit\tratio\tpeer is")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%s\t%d\t%.1f\t%s\t%s\t%s\t%s\n", r.Group, r.Case, r.Threads, r.Flagos, figure("%.1f", r.Peer), r.Unit, figure("%.2f", r.Ratio), r.PeerName)
	}
	fmt.Fprintln(t)
	fmt.Fprintln(t, "group\tthreads\tcases\tleast\tmean")
	for _, s := range summarize(rows) {
		fmt.Fprintf(t, "%s\t%d\t%d\t%.2f\t%.2f\n", s.group, s.threads, len(s.ratios), s.least, s.mean())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	said := make(map[string]bool)
	for _, r := range rows {
		if r.Absent != "" && !said[r.Absent] {
			said[r.Absent] = true
			fmt.Fprintf(w, "no %s: %s\n", r.PeerName, r.Absent)
		}
	}
	return nil
}

// summary holds the ratios of a group with one number of threads.
type summary struct {
	group   string
	threads int
	least   float64
	ratios  []float64
}

// mean returns the geometric mean.
func (s *summary) mean() float64 { return stat.GeometricMean(s.ratios, nil) }

// summarize returns the summaries in the order in which their groups appear. Cases without a peer
// are left out.
func summarize(rows []kernelRow) []*summary {
	type key struct {
		group   string
		threads int
	}
	var all []*summary
	found := make(map[key]*summary)
	for _, r := range rows {
		if r.Absent != "" {
			continue
		}
		k := key{r.Group, r.Threads}
		s := found[k]
		if s == nil {
			s = &summary{group: r.Group, threads: r.Threads, least: math.Inf(1)}
			found[k] = s
			all = append(all, s)
		}
		s.least = min(s.least, r.Ratio)
		s.ratios = append(s.ratios, r.Ratio)
	}
	return all
}
