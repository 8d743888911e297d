package cli

import (
	"fmt"
	"strconv"
	"strings"
)

// units of sizes, the longer names first.
var units = []struct {
	name  string
	bytes float64
}{
	{"tib", 1 << 40}, {"gib", 1 << 30}, {"mib", 1 << 20}, {"kib", 1 << 10}, {"tb", 1e12}, {"gb", 1e9}, {"mb", 1e6}, {"kb", 1e3}, {"b", 1},
}

// ParseSize returns the bytes of a size such as 192GB or 80GiB.
func ParseSize(text string) (float64, error) {
	lower := strings.ToLower(strings.TrimSpace(text))
	for _, u := range units {
		if number, ok := strings.CutSuffix(lower, u.name); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
			if err != nil || !(n >= 0 && n < 1e9) {
				return 0, fmt.Errorf("%q is not a number", number)
			}
			return n * u.bytes, nil
		}
	}
	if lower == "0" {
		return 0, nil
	}
	return 0, fmt.Errorf("%q has no unit", text)
}
