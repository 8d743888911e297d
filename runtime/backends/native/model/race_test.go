//go:build race

package model_test

// raceEnabled says whether the race detector runs; sync.Pool then drops what it holds, and calls allocate.
const raceEnabled = true
