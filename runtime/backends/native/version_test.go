package native_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The version is that of the newest section of the changelog.
func TestVersionIsThatOfTheRelease(t *testing.T) {
	changes, err := os.ReadFile("../../../CHANGELOG.md")
	require.NoError(t, err)
	newest := regexp.MustCompile(`(?m)^## \[(\d+\.\d+\.\d+)\]`).FindSubmatch(changes)
	require.NotNil(t, newest)
	assert.Equal(t, string(newest[1]), native.Version)
}
