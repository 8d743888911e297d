package device_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
)

// The table for users of StepMesh has every method of Backend.
func TestStepMeshTableHasTheContract(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "howto", "from-stepmesh.md"))
	require.NoError(t, err)
	contract := reflect.TypeFor[device.Backend]()
	var want, have []string
	for i := range contract.NumMethod() {
		want = append(want, contract.Method(i).Name)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| [^|]*\\| `(\\w+)` \\|").FindAllStringSubmatch(string(text), -1) {
		have = append(have, row[1])
	}
	slices.Sort(have)
	assert.Equal(t, want, have)
	assert.Contains(t, string(text), "| `"+device.EnvBackend+"` |")
	assert.Contains(t, string(text), "| `"+device.EnvBackendMisspelt+"` |")
}
