package loader_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/vendors/loader"
)

const variable = "PRIMUS_LOADER_TEST"

func TestOpenWithReachesC(t *testing.T) {
	file := compile(t, "fixture.c")
	t.Cleanup(func() { assert.NoError(t, os.Unsetenv(variable)) })
	for _, value := range []string{"from go", "again"} {
		lib, err := loader.OpenWith([]loader.Variable{{Name: variable, Value: value}}, file)
		require.NoError(t, err)
		var getenv func(string) string
		require.NoError(t, lib.Bind(&getenv, "fixture_getenv"))
		assert.Equal(t, "from go", getenv(variable), "a variable that is set stays")
	}
}

func TestOpenWithKeepsEmptyValue(t *testing.T) {
	t.Setenv(variable, "")
	_, err := loader.OpenWith([]loader.Variable{{Name: variable, Value: "x"}}, compile(t, "fixture.c"))
	require.NoError(t, err)
	assert.Empty(t, os.Getenv(variable), "a variable that is set to nothing is set")
}

func TestOpenWithUnsetsAfterAFailure(t *testing.T) {
	before := os.Environ()
	for want, name := range map[string]string{"/nonexistent.so": "ABSENT", `"A=B"`: "A=B"} {
		_, err := loader.OpenWith([]loader.Variable{{Name: variable, Value: "x"}, {Name: name, Value: "x"}}, "/nonexistent.so")
		require.ErrorContains(t, err, want)
		assert.Equal(t, before, os.Environ())
	}
}
