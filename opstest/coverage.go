package opstest

import (
	"fmt"
	"slices"
	"strings"
)

// Coverage returns a table in Markdown of ops against impls. A cell lists the storage dtypes that
// the impl serves, with how many of the cases if it declined some; a dtype with failures is bold
// with an exclamation mark, and - says that everything was declined.
func Coverage(results []Result) string {
	var impls, names []string
	cells := map[[2]string][]Result{}
	for _, r := range results {
		if !slices.Contains(impls, r.Impl) {
			impls = append(impls, r.Impl)
		}
		if !slices.Contains(names, r.Op) {
			names = append(names, r.Op)
		}
		key := [2]string{r.Op, r.Impl}
		cells[key] = append(cells[key], r)
	}
	slices.Sort(impls)
	var b strings.Builder
	fmt.Fprintf(&b, "| op | %s |\n|---|%s\n", strings.Join(impls, " | "), strings.Repeat("---|", len(impls)))
	for _, name := range names {
		row := []string{"`" + name + "`"}
		for _, impl := range impls {
			row = append(row, coverageCell(cells[[2]string{name, impl}]))
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	return b.String()
}

// coverageCell lists the dtypes that an impl of an op serves.
func coverageCell(results []Result) string {
	if results == nil {
		return ""
	}
	var served []string
	for _, r := range results {
		name := r.DType.String()
		if r.Declined > 0 {
			name += fmt.Sprintf(" %d/%d", r.Served, r.Served+r.Declined+len(r.Failures))
		}
		switch r.Status() {
		case "pass":
			served = append(served, name)
		case "fail":
			served = append(served, "**"+name+"!**")
		}
	}
	if served == nil {
		return "-"
	}
	return strings.Join(served, ", ")
}
