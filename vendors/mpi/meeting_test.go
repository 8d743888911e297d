package mpi

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A rank that hears that another one was interrupted knows that, whatever interrupted it.
func TestLostErrorSaysWhetherARankWasInterrupted(t *testing.T) {
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("signal: interrupt"))
	for reason, want := range map[string]bool{
		interrupted(ended).Error():                               true,
		"interrupted before the first step: nothing was trained": true,
		"it has no text":                                         false,
		"the connection was interrupted":                         false,
	} {
		m := &meeting{gone: make(chan error, 1)}
		m.lose(fmt.Errorf("rank 1 has left: %s", reason))
		lost := &LostError{}
		require.ErrorAs(t, m.until(newWait(t.Context(), time.Minute), nil, nil), &lost, reason)
		assert.Equal(t, want, lost.Interrupted, reason)
		assert.ErrorContains(t, lost, reason)
	}
}
