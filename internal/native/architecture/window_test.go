package architecture_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/native/architecture"
	"github.com/primus-fl/primus/runtime/backend"
)

func TestANumberOfWindowsIsWrittenOut(t *testing.T) {
	for name, tt := range map[string]struct{ layers, give, want any }{
		"every third":    {7, 3, []any{1, 1, 0, 1, 1, 0, 1}},
		"every":          {2, 1, []any{0, 0}},
		"beyond":         {2, 5, []any{1, 1}},
		"list":           {3, []any{0, 1, 1}, []any{0, 1, 1}},
		"no layers":      {nil, 3, 3},
		"not positive":   {2, 0, 0},
		"too many":       {1 << 40, 2, 2},
		"another value":  {2, "two", "two"},
		"no pattern":     {2, nil, nil},
		"layers of text": {"two", 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			given, err := document.FromGo(map[string]any{"num_layers": tt.layers, "window_attn_skip_freq": tt.give})
			require.NoError(t, err)
			params, _ := given.Map()
			args := backend.NewArgs(params)
			require.NoError(t, architecture.WriteOutWindows(args))
			got, _ := args.Lookup("window_attn_skip_freq")
			want, err := document.FromGo(tt.want)
			require.NoError(t, err)
			assert.True(t, want.Equal(got), "got %v", got.Any())
		})
	}
}
