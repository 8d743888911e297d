package oppolicy

import (
	"fmt"
	"strings"

	"github.com/primus-fl/primus/internal/suggest"
)

// CrossDevice says what happens to a call whose operands lie where no impl serves them, such as on
// an accelerator without the op. The empty CrossDevice is CrossDeviceCopy.
type CrossDevice string

// The values of CrossDevice.
const (
	// CrossDeviceCopy copies the operands to the host, where an impl runs, and copies what it wrote
	// back.
	CrossDeviceCopy CrossDevice = "copy"
	// CrossDeviceError makes the call fail.
	CrossDeviceError CrossDevice = "error"
)

// String returns copy or error.
func (c CrossDevice) String() string {
	if c == "" {
		return string(CrossDeviceCopy)
	}
	return string(c)
}

// SetCrossDevice sets what happens to calls across devices from copy or error, in any case.
func (p *Policy) SetCrossDevice(value, source string) error {
	word := strings.TrimSpace(value)
	switch c := CrossDevice(strings.ToLower(word)); c {
	case CrossDeviceCopy, CrossDeviceError:
		p.CrossDevice = c
		p.SetSource(FieldCrossDevice, source)
		return nil
	}
	return &Error{Source: source, Value: value, Offset: leadingSpace(value),
		Problem: fmt.Sprintf("unknown word %q, want copy or error%s", word, suggest.Hint(word, []string{string(CrossDeviceCopy), string(CrossDeviceError)}))}
}
