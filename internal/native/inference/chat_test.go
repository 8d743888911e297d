package inference_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/primus-fl/primus/internal/native/inference"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/primus-fl/primus/internal/tokenizer/chat"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestChat(t *testing.T) {
	t.Parallel()
	_, err := inference.NewChat(t.Context(), tokenizer.Byte{}, "")
	require.ErrorIs(t, err, inference.ErrNoChat)
	_, err = inference.NewChat(t.Context(), tokenizer.Byte{}, "chatml2")
	require.ErrorContains(t, err, `did you mean "chatml"`)

	c, err := inference.NewChat(t.Context(), tokenizer.Byte{}, "chatml")
	require.NoError(t, err)
	assert.Equal(t, []string{"<|im_end|>"}, c.Stop())
	assert.Contains(t, c.Template(), "<|im_start|>")
	ids, err := c.Prompt(t.Context(), chat.Message{Role: "user", Content: "Hi"})
	require.NoError(t, err)
	assert.Equal(t, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", string(tokenizer.Byte{}.Decode(nil, ids)))

	file := filepath.Join(t.TempDir(), "form.jinja")
	require.NoError(t, os.WriteFile(file, []byte(`{% for m in messages %}{{ m.role }}: {{ m.content }}
{% endfor %}`), 0o600))
	c, err = inference.NewChat(t.Context(), tokenizer.Byte{}, file)
	require.NoError(t, err)
	assert.Empty(t, c.Stop(), "a newline alone ends no answer")
}
