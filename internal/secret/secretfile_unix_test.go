//go:build unix

package secret_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/secret"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPermissions(t *testing.T) {
	for _, tt := range []struct {
		mode  fs.FileMode
		owner int // 0 is whoever runs the test
		ok    bool
	}{
		{0o600, 0, true}, {0o400, 0, true}, {0o700, 0, true},
		{0o640, 0, false}, {0o604, 0, false}, {0o620, 0, false}, {0o602, 0, false}, {0o601, 0, false}, {0o644, 0, false}, {0o777, 0, false},
		{0o440, 12345, true}, {0o444, 12345, false}, {0o646, 12345, false},
	} {
		t.Run(tt.mode.String(), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "secret")
			require.NoError(t, os.WriteFile(file, []byte("hush"), 0o600))
			require.NoError(t, os.Chmod(file, tt.mode))
			if tt.owner != 0 {
				if os.Geteuid() != 0 {
					t.Skip("only root can give a file to another user")
				}
				require.NoError(t, os.Chown(file, tt.owner, tt.owner))
			}
			text, err := secret.Read(file)
			if tt.ok {
				require.NoError(t, err)
				assert.Equal(t, "hush", string(text))
				return
			}
			var exposed *secret.ExposedError
			require.ErrorAs(t, err, &exposed)
			assert.ErrorContains(t, err, "chmod 600 "+file)
			assert.Empty(t, text)
		})
	}
}

func TestWhatIsNoSecret(t *testing.T) {
	_, err := secret.Read(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = secret.Read(t.TempDir())
	require.Error(t, err)
	file := filepath.Join(t.TempDir(), "large")
	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("x", 1<<20+1)), 0o600))
	_, err = secret.Read(file)
	assert.ErrorContains(t, err, "more than 1048576 bytes")
}
