package patch

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Version is a parsed version: the numbers between the dots, in decimal without leading zeros.
type Version []string

// ParseVersion reads the leading digits of each part between dots: 0.15.0rc8 is 0.15.0. A version
// with a part that begins with anything else, such as unknown, v1.0 or 0..1, cannot be compared.
func ParseVersion(text string) (Version, bool) {
	parts := strings.Split(text, ".")
	for i, part := range parts {
		digits := len(part) - len(strings.TrimLeft(part, "0123456789"))
		if digits == 0 {
			return nil, false
		}
		parts[i] = cmp.Or(strings.TrimLeft(part[:digits], "0"), "0")
	}
	return parts, true
}

// Compare orders versions part by part; of two that agree as far as they go the shorter one is
// smaller, so 0.17 < 0.17.0.
func (v Version) Compare(w Version) int {
	return slices.CompareFunc(v, w, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	})
}

var comparator = regexp.MustCompile(`^(<=|>=|<|>)([0-9.]+)$`)

// MatchVersion reports whether a version fits a pattern. A pattern is, tested in this order,
//
//	low~high      an inclusive range
//	>=1.2 <=1.2 >1.2 <1.2   a comparison: the operator, digits and dots, nothing else
//	0.8.*         a wildcard: * is any run of characters, dots are literal, the rest is a regular expression
//	0.8.0         exactly this text
//
// Ranges and comparisons are false for versions or bounds that ParseVersion cannot read. An empty
// version fits nothing. The error is that of a wildcard that is no regular expression. These are
// the rules of Primus, including surprising ones: ">= 0.8", "==0.8" and ">=0.8rc1" are plain texts,
// and 0.8.0+cu* does not fit 0.8.0+cu121.
func MatchVersion(version, pattern string) (bool, error) {
	if version == "" {
		return false, nil
	}
	if low, high, isRange := strings.Cut(pattern, "~"); isRange {
		return compareVersions(version, low, func(c int) bool { return c >= 0 }) &&
			compareVersions(version, high, func(c int) bool { return c <= 0 }), nil
	}
	if m := comparator.FindStringSubmatch(pattern); m != nil {
		return compareVersions(version, m[2], map[string]func(int) bool{
			"<=": func(c int) bool { return c <= 0 }, ">=": func(c int) bool { return c >= 0 },
			"<": func(c int) bool { return c < 0 }, ">": func(c int) bool { return c > 0 },
		}[m[1]]), nil
	}
	if !strings.Contains(pattern, "*") {
		return version == pattern, nil
	}
	wildcard, err := regexp.Compile("^" + strings.NewReplacer(".", `\.`, "*", ".*").Replace(pattern) + "$")
	if err != nil {
		return false, fmt.Errorf("version pattern %q: %w", pattern, err)
	}
	return wildcard.MatchString(version), nil
}

// compareVersions reports whether ok holds for the comparison of a version with a bound. It returns
// false if either cannot be read.
func compareVersions(version, bound string, ok func(int) bool) bool {
	v, readable := ParseVersion(version)
	b, bounded := ParseVersion(bound)
	return readable && bounded && ok(v.Compare(b))
}

// matchAny reports whether a version fits one of the patterns; no patterns fit everything.
func matchAny(version string, patterns []string) (bool, error) {
	for _, pattern := range patterns {
		if ok, err := MatchVersion(version, pattern); ok || err != nil {
			return ok, err
		}
	}
	return len(patterns) == 0, nil
}
