package python

import (
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
	return v, err == nil
}

// Int returns the whole number that a text begins with, spaces aside.
func Int(text string) (int, bool) {
	v, ok := Float(text)
	if !ok || v != float64(int(v)) {
		return 0, false
	}
	return int(v), true
}
