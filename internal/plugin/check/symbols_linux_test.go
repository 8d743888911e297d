package check_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/loadertest"
	"github.com/primus-fl/primus/internal/plugin/check"
	"github.com/primus-fl/primus/vendors/loader"
)

func library(t *testing.T, name, text string) string {
	t.Helper()
	source := filepath.Join(t.TempDir(), "source.c")
	require.NoError(t, os.WriteFile(source, []byte(text), 0o600))
	return loadertest.Library(t, name, source)
}

func TestWitnessed(t *testing.T) {
	t.Parallel()
	spy := library(t, "libspy.so", `
		#include <stdlib.h>
		#include <time.h>
		long spy(void) { struct timespec now; clock_gettime(CLOCK_MONOTONIC, &now); return getenv("CI") ? now.tv_sec : 0; }`)
	assert.Equal(t, "it looks at the clock and the environment (clock_gettime, getenv), so it could tell a check from training", check.Witnessed(spy))
	assert.Empty(t, check.Witnessed(library(t, "librust.so", `
		#include <stdlib.h>
		const char *const source = "/rustc/59807616/library/std/src/panicking.rs";
		const char *style(void) { return getenv("RUST_BACKTRACE"); }`)), "the standard library of Rust calls getenv itself")
	assert.Empty(t, check.Witnessed(library(t, "libhonest.so", `float twice(float x) { return 2 * x; }`)))
	assert.Empty(t, check.Witnessed("symbols_test.go"))
}

// A library that has the ops of this program is named once it is loaded; one that only calls them
// is not it.
func TestOurs(t *testing.T) {
	t.Parallel()
	lib := library(t, "libours.so", `int primus_run(void) { return 0; }`)
	caller := library(t, "libcaller.so", `extern int primus_run(void); int call(void) { return primus_run(); }`)
	assert.True(t, check.Ours(lib))
	assert.False(t, check.Ours(caller))
	assert.NotContains(t, check.Mapped(), lib)
	_, err := loader.Open(lib)
	require.NoError(t, err)
	assert.Contains(t, check.Mapped(), lib)
}
