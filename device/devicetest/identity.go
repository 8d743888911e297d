package devicetest

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/device"
)

var upperName = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)

var identityChecks = []check{
	{"name_is_upper_case_and_constant", func(t *testing.T, b device.Backend) {
		assert.Regexp(t, upperName, b.Name())
		assert.Equal(t, b.Name(), b.Name())
	}},
	{"usable_can_be_asked_again", func(t *testing.T, b device.Backend) {
		assert.NoError(t, b.Usable())
	}},
}
