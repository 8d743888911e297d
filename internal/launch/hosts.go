package launch

import (
	"fmt"
	"strconv"
	"strings"
)

// maxHosts is the longest list of hosts that is written out.
const maxHosts = 1 << 20

// Hosts writes a list of hosts out as Slurm abbreviates it, such as n[01-03,7],login.
func Hosts(list string) ([]string, error) {
	var hosts []string
	for _, word := range splitOutside(list) {
		expanded, err := expandHost(word)
		if err != nil {
			return nil, fmt.Errorf("list of hosts %q: %w", list, err)
		}
		if hosts = append(hosts, expanded...); len(hosts) > maxHosts {
			return nil, fmt.Errorf("list of hosts %q: more than %d hosts", list, maxHosts)
		}
	}
	return hosts, nil
}

// splitOutside splits a list at the commas that are not in brackets.
func splitOutside(list string) []string {
	var words []string
	depth, from := 0, 0
	for i, r := range list + "," {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth--
		case r == ',' && depth == 0:
			if word := strings.TrimSpace(list[from:i]); word != "" {
				words = append(words, word)
			}
			from = i + 1
		}
	}
	if from < len(list) {
		words = append(words, list[from:]) // an open bracket, which expandHost reports
	}
	return words
}

// expandHost writes the first brackets of a name out, and then those after them.
func expandHost(name string) ([]string, error) {
	before, rest, ok := strings.Cut(name, "[")
	if !ok {
		if strings.Contains(name, "]") {
			return nil, fmt.Errorf("%q: given ] without [", name)
		}
		return []string{name}, nil
	}
	ranges, after, ok := strings.Cut(rest, "]")
	if !ok {
		return nil, fmt.Errorf("%q: given [ without ]", name)
	}
	tails, err := expandHost(after)
	if err != nil {
		return nil, err
	}
	var hosts []string
	for part := range strings.SplitSeq(ranges, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.ParseUint(first, 10, 31)
		to, toErr := strconv.ParseUint(last, 10, 31)
		if err != nil || toErr != nil || to < from || (to-from+1)*uint64(len(tails)) > maxHosts {
			return nil, fmt.Errorf("%q: given %q, want a number or a range such as 01-16", name, part)
		}
		for n := from; n <= to; n++ {
			for _, tail := range tails {
				hosts = append(hosts, fmt.Sprintf("%s%0*d%s", before, len(first), n, tail))
			}
		}
		if len(hosts) > maxHosts {
			return nil, fmt.Errorf("%q: more than %d hosts", name, maxHosts)
		}
	}
	return hosts, nil
}
