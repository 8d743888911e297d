//go:build race

package flagos_test

const raceEnabled = true
