package oppolicy

import (
	"fmt"
	"strings"

	"github.com/primus-fl/primus/internal/suggest"
)

// Phase is the part of a training step that a call belongs to.
type Phase uint8

// The phases. The zero Phase stands for calls outside of both.
const (
	PhaseUnspecified Phase = iota
	PhaseForward
	PhaseBackward
)

var phaseNames = [...]string{PhaseForward: "forward", PhaseBackward: "backward"}

// String returns the name of the phase in lower case.
func (p Phase) String() string {
	if p == PhaseUnspecified || int(p) >= len(phaseNames) {
		return fmt.Sprintf("phase(%d)", uint8(p))
	}
	return phaseNames[p]
}

// MarshalText returns the name of the phase; that of the zero Phase is empty.
func (p Phase) MarshalText() ([]byte, error) {
	if p == PhaseUnspecified {
		return nil, nil
	}
	return []byte(p.String()), nil
}

// UnmarshalText reads what MarshalText writes.
func (p *Phase) UnmarshalText(text []byte) (err error) {
	*p = PhaseUnspecified
	if len(text) > 0 {
		*p, err = ParsePhase(string(text))
	}
	return err
}

// ParsePhase reads forward or backward in any case.
func ParsePhase(name string) (Phase, error) {
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "forward":
		return PhaseForward, nil
	case "backward":
		return PhaseBackward, nil
	}
	return 0, fmt.Errorf("unknown phase %q, want forward or backward%s", name, suggest.Hint(name, []string{"forward", "backward"}))
}
