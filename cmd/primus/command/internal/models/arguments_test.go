package models

import (
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/stretchr/testify/assert"
)

func TestModelWithoutItsFlag(t *testing.T) {
	cmd := NewGenerate(cli.Program{})
	assert.NoError(t, onlyFlags(cmd, nil))
	assert.ErrorContains(t, onlyFlags(cmd, []string{"output/run"}), `unexpected argument "output/run"; did you mean --checkpoint output/run?`)
	assert.NoError(t, cmd.Flags().Set("checkpoint", "other"))
	assert.ErrorContains(t, onlyFlags(cmd, []string{"word"}), `unexpected argument "word"; see`)
}
