package python

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

// escapes matches the colours in a log.
var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// Plain returns a line without colours.
func Plain(line string) string {
	if !strings.Contains(line, "\x1b") {
		return line
	}
	return escapes.ReplaceAllString(line, "")
}

// number matches a number at the beginning of a text, with or without commas between thousands.
var number = regexp.MustCompile(`^[-+]?(\d[\d,]*\.?\d*([eE][-+]?\d+)?|nan|inf)`)

// Float returns the number that a text begins with, spaces aside.
func Float(text string) (float64, bool) {
	found := number.FindString(strings.TrimSpace(strings.ToLower(text)))
	v, err := strconv.ParseFloat(strings.ReplaceAll(found, ",", ""), 64)
	if err != nil {
		return 0, false
	}
	return v, true
}

// maxInt is the largest magnitude up to which a float64 holds every whole number.
const maxInt = 1 << 53

// Int returns the whole number that a text begins with, spaces aside.
func Int(text string) (int, bool) {
	v, ok := Float(text)
	if !ok || math.Abs(v) > maxInt || v != math.Trunc(v) {
		return 0, false
	}
	return int(v), true
}
