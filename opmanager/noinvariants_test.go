//go:build !invariants

package opmanager_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// allocateNothing fails unless calls of f allocate nothing.
func allocateNothing(t *testing.T, f func()) {
	t.Helper()
	assert.Zero(t, testing.AllocsPerRun(100, f))
}
