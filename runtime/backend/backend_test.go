package backend_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type adapter string

func (a adapter) Framework() string                                           { return string(a) }
func (a adapter) ConvertConfig(*config.Module) (any, []config.Warning, error) { return nil, nil, nil }
func (a adapter) NewTrainer(string, any, backend.TrainContext) (backend.Trainer, error) {
	return nil, errors.New("none")
}

func TestRegistry(t *testing.T) {
	r, err := backend.NewRegistry(adapter("native"), adapter("dummy"))
	require.NoError(t, err)
	assert.Equal(t, []string{"dummy", "native"}, r.Names())
	got, err := r.Get("native")
	require.NoError(t, err)
	assert.Equal(t, adapter("native"), got)
	_, err = r.Get("natvie")
	require.ErrorIs(t, err, backend.ErrUnknown)
	assert.EqualError(t, err, `unknown framework "natvie": available are dummy, native; did you mean "native"?`)
	_, err = backend.NewRegistry(adapter("native"), adapter("native"))
	assert.ErrorContains(t, err, `two adapters for framework "native"`)
}

func TestLogFileHoldsTheWholeLog(t *testing.T) {
	var l backend.LogFile
	write := func(text string) {
		n, err := l.Write([]byte(text))
		require.NoError(t, err)
		require.Equal(t, len(text), n)
	}
	write("before ")
	var file bytes.Buffer
	require.NoError(t, l.Attach(&file))
	write("during ")
	l.Detach()
	write("after")
	assert.Equal(t, "before during ", file.String())
}
