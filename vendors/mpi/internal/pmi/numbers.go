package pmi

import (
	"strconv"
	"strings"
)

// Numbers writes ascending numbers as a list of ranges, such as 0-2, 5.
func Numbers(all []int) string {
	var parts []string
	for i := 0; i < len(all); {
		end := i
		for end+1 < len(all) && all[end+1] == all[end]+1 {
			end++
		}
		part := strconv.Itoa(all[i])
		if end > i {
			part += "-" + strconv.Itoa(all[end])
		}
		parts = append(parts, part)
		i = end + 1
	}
	return strings.Join(parts, ", ")
}

// Parse returns the numbers of a list that Numbers has written. Of a list with more than maxRanks
// it returns those before.
func Parse(list string) map[int]bool {
	all, left := map[int]bool{}, maxRanks
	for part := range strings.SplitSeq(list, ", ") {
		first, last, several := strings.Cut(part, "-")
		lo, err := strconv.Atoi(first)
		hi := lo
		if several && err == nil {
			hi, err = strconv.Atoi(last)
		}
		if err != nil || lo < 0 || lo > hi || hi >= maxRanks {
			continue
		}
		if left -= hi - lo + 1; left < 0 {
			break
		}
		for n := lo; n <= hi; n++ {
			all[n] = true
		}
	}
	return all
}

// maxRanks is the largest number of ranks that Parse reads, in one list and altogether.
const maxRanks = 1 << 16
