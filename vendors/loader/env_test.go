package loader_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/vendors/loader"
)

func TestSetDefaultEnvReachesC(t *testing.T) {
	lib := openFixture(t)
	var getenv func(string) string
	require.NoError(t, lib.Bind(&getenv, "fixture_getenv"))
	const name = "PRIMUS_LOADER_TEST"
	t.Cleanup(func() { assert.NoError(t, os.Unsetenv(name)) })

	set, err := loader.SetDefaultEnv(name, "from go")
	require.NoError(t, err)
	assert.True(t, set)
	assert.Equal(t, "from go", getenv(name))

	set, err = loader.SetDefaultEnv(name, "again")
	require.NoError(t, err)
	assert.False(t, set)
	assert.Equal(t, "from go", getenv(name))
}

func TestSetDefaultEnvKeepsEmptyValue(t *testing.T) {
	t.Setenv("PRIMUS_LOADER_TEST", "")
	set, err := loader.SetDefaultEnv("PRIMUS_LOADER_TEST", "x")
	require.NoError(t, err)
	assert.False(t, set, "a variable that is set to nothing is set")
}

func TestSetDefaultEnvRefusesBadName(t *testing.T) {
	set, err := loader.SetDefaultEnv("A=B", "x")
	require.ErrorContains(t, err, `"A=B"`)
	assert.False(t, set)
}
