package primustest

import (
	"os"
	"testing"

	"github.com/primus-fl/primus/internal/race"
)

// Cases returns how many similar cases a test tries: the usual number, an eighth of it in the short
// mode and under the race detector, and all of them in make test-thorough, which sets
// TEST_THOROUGH=1. The first ones are the same each time, so that no run fails by chance.
func Cases(usual, all int) int {
	switch {
	case os.Getenv("TEST_THOROUGH") != "":
		return all
	case testing.Short(), race.Enabled:
		return max(1, usual/8)
	}
	return usual
}

// Long skips a test in the short mode.
func Long(t testing.TB, why string) {
	t.Helper()
	if testing.Short() {
		t.Skipf("left out by -short: %s", why)
	}
}

// Sequential skips a test under the race detector, which has nothing to see in it: arithmetic, or
// commands and training runs one after the other. TEST_THOROUGH=1 runs it all the same.
func Sequential(t testing.TB, what string) {
	t.Helper()
	if race.Enabled && os.Getenv("TEST_THOROUGH") == "" {
		t.Skipf("left out under the race detector: %s", what)
	}
}
