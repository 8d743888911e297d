package command_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
)

// properties reads lines of the form key.below = value, as another program might.
type properties struct{}

func (properties) Name() string { return "properties" }

func (properties) Extensions() []string { return []string{".properties"} }

func (properties) Load(_ context.Context, file string, data []byte) (document.Value, []document.Duplicate, error) {
	top, number := &document.Builder{}, 0
	for line := range strings.Lines(string(data)) {
		number++
		origin := document.Origin{File: file, Line: number}
		key, text, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok {
			return document.Value{}, nil, &document.Error{Origin: origin, Problem: "given no =, want key = value"}
		}
		value := document.StringValue(strings.TrimSpace(text)).At(origin)
		segments := strings.Split(strings.TrimSpace(key), ".")
		for i := len(segments) - 1; i > 0; i-- {
			var b document.Builder
			b.Set(segments[i], value)
			value = document.MapValue(b.Map()).At(origin)
		}
		var one document.Builder
		one.Set(segments[0], value)
		top = document.NewBuilder(document.Merge(top.Map(), one.Map()))
	}
	return document.MapValue(top.Map()), nil, nil
}

// shouting also writes its format.
type shouting struct{ properties }

func (shouting) Render(m *document.Map, _ bool) ([]byte, error) {
	text, err := m.MarshalJSON()
	return append(bytes.ToUpper(text), '\n'), err
}

const propertiesExperiment = `work_group = w
user_name = u
exp_name = e
workspace = ${PRIMUS_WORKSPACE:out}
modules.pre_trainer.framework = native
modules.pre_trainer.config = pre_trainer.yaml
modules.pre_trainer.model = llama_2M.yaml
modules.pre_trainer.overrides.train_iters = 7
`

// A program adds a file format to those of experiments, and every command knows it.
func TestOwnFormat(t *testing.T) {
	primustest.Sequential(t, "it runs one command after the other")
	file := filepath.Join(t.TempDir(), "exp.properties")
	require.NoError(t, os.WriteFile(file, []byte(propertiesExperiment), 0o600))
	option := grouped[document.Loader](command.Formats, properties{})

	got := primusWith(t, option, "config", "show", "--config", file, "--origin")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "train_iters: \"7\" # "+file+":8")
	got = primusWith(t, option, "config", "validate", file)
	assert.Zero(t, got.Code, got.Stderr)
	got = primusWith(t, option, "train", "--config", file, "--dry-run", "--verbose", "train_iters=3", "train_data_path="+commandtest.NewLab(t).Text)
	assert.Zero(t, got.Code, got.Stderr)
	got = primusWith(t, option, "config", "show", "--config", file, "--export-config", file)
	assert.Equal(t, 2, got.Code, "it can be read and not written")
	got = primusWith(t, option, "__complete", "train", "--config", "")
	assert.Contains(t, got.Out, "\nproperties\n")

	got = commandtest.Run(t, "config", "show", "--config", file)
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, got.Stderr, `unknown format ".properties", want one of .yaml .yml .json .toml`)
}

func TestOwnRenderer(t *testing.T) {
	l := commandtest.NewLab(t)
	option := grouped[document.Loader](command.Formats, shouting{})
	got := primusWith(t, option, "config", "show", "--config", l.Exp, "-o", "properties")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, `{"EXP_META_INFO":`)
	got = primusWith(t, option, "config", "show", "--config", l.Exp, "--export-config", filepath.Join(t.TempDir(), "exp.properties"))
	assert.Equal(t, 1, got.Code, "what does not load back is not written")
}

func TestFormatsInConflict(t *testing.T) {
	tests := []struct {
		name   string
		option fx.Option
		want   string
	}{
		{"two of one name", grouped[document.Loader](command.Formats, formats.YAML{}), `two formats for "yaml": formats.YAML and formats.YAML; remove one`},
		{"no format", grouped[document.Loader](command.Formats, nameless{}), `format "" of command_test.nameless: want a name and a file name ending`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := primusWith(t, tt.option, "config", "show", "--config", commandtest.NewLab(t).Exp)
			assert.Equal(t, 1, got.Code)
			assert.Contains(t, got.Stderr, tt.want)
		})
	}
}

type nameless struct{ properties }

func (nameless) Name() string { return "" }

func (nameless) Extensions() []string { return nil }
