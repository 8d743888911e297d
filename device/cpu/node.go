package cpu

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// maxNode bounds node numbers. It is far above 1024, the most that Linux can be built for.
const maxNode = 1 << 16

// readNodes returns the numbers of the NUMA nodes that have memory, in ascending order, from a
// directory laid out like Linux's. Without usable information it returns one node.
func readNodes(dir fs.FS) []int {
	text, err := fs.ReadFile(dir, "has_memory")
	if err != nil {
		return []int{0}
	}
	nodes, err := parseList(strings.TrimSpace(string(text)))
	if err != nil || len(nodes) == 0 {
		return []int{0}
	}
	return nodes
}

// parseList parses the kernel's format for sets of numbers, as in "0-3,8".
func parseList(text string) ([]int, error) {
	if text == "" {
		return nil, nil
	}
	var numbers []int
	for item := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(item, "-")
		if !isRange {
			last = first
		}
		from, errFrom := strconv.ParseUint(first, 10, 32)
		to, errTo := strconv.ParseUint(last, 10, 32)
		if errFrom != nil || errTo != nil || from > to || to > maxNode {
			return nil, fmt.Errorf("cpu: node list %q: want numbers and ranges up to %d, as in 0-3,8", text, maxNode)
		}
		for n := from; n <= to; n++ {
			numbers = append(numbers, int(n))
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers), nil
}
