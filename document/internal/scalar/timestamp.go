package scalar

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// Date is a calendar date as ISO 8601 text, such as 2025-01-31.
type Date string

// Time is a date with time of day as ISO 8601 text, with a zone only where the source had one.
type Time string

var timestamp = regexp.MustCompile(`^([0-9]{4})-([0-9]{2})-([0-9]{2})$|` +
	`^([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})(?:[Tt]|[ \t]+)([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]*))?` +
	`(?:[ \t]*(Z|([-+])([0-9]{1,2})(?::([0-9]{2}))?))?$`)

func parseTimestamp(text string) (any, error) {
	m := timestamp.FindStringSubmatch(text)
	if m[1] != "" {
		day, err := checkedTime(text, m[1], m[2], m[3], "0", "0", "0")
		if err != nil {
			return nil, err
		}
		return Date(day.Format(time.DateOnly)), nil
	}
	t, err := checkedTime(text, m[4], m[5], m[6], m[7], m[8], m[9])
	if err != nil {
		return nil, err
	}
	iso := t.Format("2006-01-02T15:04:05")
	if micros := microseconds(m[10]); micros != 0 {
		iso += fmt.Sprintf(".%06d", micros)
	}
	switch {
	case m[11] == "Z":
		iso += "+00:00"
	case m[11] != "":
		minutes := 60*atoi(m[13]) + atoi(m[14])
		if minutes >= 24*60 {
			return nil, fmt.Errorf("%q has a zone offset of 24 hours or more", text)
		}
		sign := m[12]
		if minutes == 0 {
			sign = "+"
		}
		iso += fmt.Sprintf("%s%02d:%02d", sign, minutes/60, minutes%60)
	}
	return Time(iso), nil
}

// checkedTime refuses what time.Date would normalise, such as the 45th day of a month.
func checkedTime(text, year, month, day, hour, minute, second string) (time.Time, error) {
	y, mo, d, h, mi, s := atoi(year), atoi(month), atoi(day), atoi(hour), atoi(minute), atoi(second)
	t := time.Date(y, time.Month(mo), d, h, mi, s, 0, time.UTC)
	if y == 0 || t.Year() != y || int(t.Month()) != mo || t.Day() != d || t.Hour() != h || t.Minute() != mi || t.Second() != s {
		return time.Time{}, fmt.Errorf("%q looks like a date but names no existing one; quote it if it is text", text)
	}
	return t, nil
}

func microseconds(fraction string) int {
	if len(fraction) > 6 {
		fraction = fraction[:6]
	}
	micros := atoi(fraction)
	for range 6 - len(fraction) {
		micros *= 10
	}
	return micros
}

// atoi reads text the regular expression has already proven to be at most a few digits, or empty
// for zero.
func atoi(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}
