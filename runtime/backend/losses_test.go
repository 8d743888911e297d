package backend_test

import (
	"testing"

	"github.com/primus-fl/primus/runtime/backend"
	"github.com/stretchr/testify/assert"
)

// The losses of a run are those of its last step, with those of the last evaluation.
func TestRunLosses(t *testing.T) {
	t.Parallel()
	ce, valid, test := 2.5, 2.75, 2.25
	var l backend.RunLosses
	l.Update(backend.Step{Step: 1, Loss: 5, ValidLoss: &valid, ValidTokens: 64, ValidBytes: 100})
	l.Update(backend.Step{Step: 2, Loss: 4, CrossEntropy: &ce})
	assert.Equal(t, backend.RunLosses{Loss: 4, CrossEntropy: &ce, FirstLoss: 5, ValidLoss: &valid, ValidTokens: 64, ValidBytes: 100}, l)
	l.Update(backend.Step{Step: 3, Loss: 3, TestLoss: &test, TestTokens: 32})
	assert.Equal(t, backend.RunLosses{Loss: 3, FirstLoss: 5, ValidLoss: &valid, ValidTokens: 64, ValidBytes: 100, TestLoss: &test, TestTokens: 32}, l)
}
