package scalar

import (
	"errors"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// maxDigits bounds the length of an integer literal: conversion is superlinear, and nobody writes
// longer ones by hand.
const maxDigits = 4300

var errTooLong = errors.New("more than " + strconv.Itoa(maxDigits) + " digits")

var plainFloat = regexp.MustCompile(`^(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$`)

// parseInt reads digits without sign or separators and returns int64, or *big.Int where int64 is
// too small.
func parseInt(digits string, base int, negative bool) (any, error) {
	if len(digits) > maxDigits {
		return nil, errTooLong
	}
	if strings.ContainsAny(digits, "+-_") {
		return nil, strconv.ErrSyntax
	}
	if negative {
		digits = "-" + digits
	}
	n, ok := new(big.Int).SetString(digits, base)
	if !ok {
		return nil, strconv.ErrSyntax
	}
	return Int(n), nil
}

// Int returns n as int64 when it fits, else n itself.
func Int(n *big.Int) any {
	if n.IsInt64() {
		return n.Int64()
	}
	return n
}

// parseFloat reads an unsigned decimal float without separators. Overflow gives an infinity, as in
// Python.
func parseFloat(text string) (float64, bool) {
	if !plainFloat.MatchString(text) {
		return 0, false
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	return f, true
}

func sexagesimalInt(digits string, negative bool) (any, error) {
	if len(digits) > maxDigits {
		return nil, errTooLong
	}
	total, sixty := new(big.Int), big.NewInt(60)
	for part := range strings.SplitSeq(digits, ":") {
		n, ok := new(big.Int).SetString(part, 10)
		if !ok || strings.ContainsAny(part, "+-") {
			return nil, strconv.ErrSyntax
		}
		total.Add(total.Mul(total, sixty), n)
	}
	if negative {
		total.Neg(total)
	}
	return Int(total), nil
}

// sexagesimalFloat sums the places from the least significant one, the order that decides the last
// bit.
func sexagesimalFloat(digits string) (float64, error) {
	parts := strings.Split(digits, ":")
	total, weight := 0.0, 1.0
	for i := len(parts) - 1; i >= 0; i-- {
		f, ok := parseFloat(parts[i])
		if !ok {
			return 0, strconv.ErrSyntax
		}
		total += float64(f * weight)
		weight *= 60
	}
	return total, nil
}
