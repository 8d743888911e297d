package torchfile

import (
	"errors"
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/meter"
)

// A pickle of more instructions than any description has is refused in the middle.
func TestInstructionsAreBounded(t *testing.T) {
	_, err := unpickle([]byte(strings.Repeat("N0", maxSteps)+"N."), newMeter(t.Context()))
	if _, ok := errors.AsType[*meter.Error](err); !ok || !strings.Contains(err.Error(), "the pickle takes more than 16777216 instructions: save the tensors alone") {
		t.Fatalf("given %v, want an error of the budget", err)
	}
	if err := newMeter(t.Context()).Allocate(maxPickle + 1); err == nil || !strings.Contains(err.Error(), "the pickle takes more than 67108864 bytes") {
		t.Fatalf("given %v, want an error of the budget", err)
	}
}
