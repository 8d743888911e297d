package native_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// floats returns the names of the parameters of a struct that are numbers with a fraction.
func floats(of reflect.Type) []string {
	var names []string
	for i := range of.NumField() {
		switch f := of.Field(i); {
		case f.Anonymous:
			names = append(names, floats(f.Type)...)
		case f.Type.Kind() == reflect.Float64:
			names = append(names, f.Tag.Get("param"))
		}
	}
	return names
}

// A number that cannot be computed with is found before anything is made, not in the first save.
func TestNumbersThatCannotBe(t *testing.T) {
	l := newLab(t)
	l.model = "moe_8x3M"
	file := filepath.Join(l.dir, "exp.yaml")
	experiment, err := os.ReadFile(file)
	require.NoError(t, err)
	names := floats(reflect.TypeFor[native.Args]())
	require.Greater(t, len(names), 12)
	for _, name := range names {
		for _, value := range []string{".nan", ".inf", "-.inf", "1.0e+309", "-1.0e+309", "1.0e+39", "1.0e-60"} {
			require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "%s      %s: %s\n", experiment, name, value), 0o644))
			err := l.train(t.Context(), "run")
			if assert.Error(t, err, "%s=%s", name, value) {
				assert.Contains(t, err.Error(), name+": given ", value)
				assert.Equal(t, 1, strings.Count(err.Error(), "modules.pre_trainer."+name+": "), err)
			}
		}
	}
	assert.NoDirExists(t, l.path("run"))
}
