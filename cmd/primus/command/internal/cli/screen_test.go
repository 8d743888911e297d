package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWidthOfTables(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, file.Close()) })
	for _, tt := range []struct {
		columns string
		args    []string
		want    int
	}{
		{"", nil, 0},
		{"72", nil, 72},
		{"72", []string{"--wide"}, 0},
		{"72", []string{"--wide=false"}, 72},
		{"72", []string{"-o", "json"}, 72},
		{"0", nil, 0},
		{"-3", nil, 0},
		{"wide", nil, 0},
	} {
		t.Setenv("COLUMNS", tt.columns)
		out := newScreen(file)
		got := -1
		var output OutputFormat
		cmd := &cobra.Command{Use: "list", PreRunE: func(cmd *cobra.Command, _ []string) error { return ApplyDefaults(cmd) }, Run: func(*cobra.Command, []string) {
			got = 0
			if s, ok := out.(plaintext.Screen); ok {
				got = s.Columns()
			}
		}}
		output.AddFlag(cmd)
		cmd.SetOut(out)
		cmd.SetArgs(append([]string{}, tt.args...))
		require.NoError(t, cmd.Execute())
		assert.Equal(t, tt.want, got, "COLUMNS=%s %v", tt.columns, tt.args)
		assert.Same(t, file, Inherited(out))
	}
}
