package policy_test

import (
	"encoding/json"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// CUDA_HOME, then CUDA_PATH, name the CUDA installation, which policy show reports with where it
// was said.
func TestCUDAHome(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct{ home, path, want, source string }{
		{dir, "/elsewhere", dir, "environment CUDA_HOME"},
		{" ", dir, dir, "environment CUDA_PATH"},
		{"/nonexistent/cuda", "", "/nonexistent/cuda", "environment CUDA_HOME"},
	} {
		t.Setenv("CUDA_HOME", tt.home)
		t.Setenv("CUDA_PATH", tt.path)
		got := commandtest.Run(t, "policy", "show", "-o", "json")
		require.Zero(t, got.Code, got.Stderr)
		var shown struct {
			CUDA struct{ Dir, Source string } `json:"cuda_home"`
		}
		require.NoError(t, json.Unmarshal([]byte(got.Out), &shown))
		assert.Equal(t, tt.want, shown.CUDA.Dir)
		assert.Equal(t, tt.source, shown.CUDA.Source)
		if tt.want == dir {
			assert.Empty(t, got.Stderr)
		} else {
			assert.Contains(t, got.Stderr, `WARN  environment CUDA_HOME="/nonexistent/cuda" is not a directory`)
		}
		assert.Regexp(t, `(?m)^cuda_home +`+tt.want+` +`+tt.source+`$`, commandtest.Run(t, "policy", "show").Out)
	}
}
