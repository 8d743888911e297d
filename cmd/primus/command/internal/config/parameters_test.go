package config_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/cmd/primus/command/internal/config"
	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/goldentest"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// The description has exactly the parameters that the trainer reads.
func TestParametersAreThoseOfTheTrainer(t *testing.T) {
	t.Parallel()
	var described, read []string
	for _, p := range config.NativeParameters() {
		assert.NotEmpty(t, p.Meaning, p.Names)
		assert.NotEmpty(t, p.Default, p.Names)
		described = append(described, p.Names...)
	}
	for _, p := range document.Parameters(&native.Args{}) {
		read = append(read, p.Name)
	}
	assert.ElementsMatch(t, read, described)
}

// A default is the value in the presets for pretraining, if they have one other than null.
func TestParametersHaveTheDefaultsOfThePresets(t *testing.T) {
	t.Parallel()
	var shown struct {
		Modules struct {
			Trainer struct{ Params map[string]any } `json:"pre_trainer"`
		}
	}
	exp := filepath.Join(t.TempDir(), "exp.yaml")
	text := "work_group: w\nuser_name: u\nexp_name: e\nmodules:\n  pre_trainer: {framework: native, config: pre_trainer.yaml, model: llama_2M.yaml}\n"
	require.NoError(t, os.WriteFile(exp, []byte(text), 0o644))
	got := commandtest.Run(t, "config", "show", "--config", exp, "-o", "json")
	require.NoError(t, json.Unmarshal([]byte(got.Out), &shown), got.Stderr)
	params := shown.Modules.Trainer.Params
	compared := 0
	for _, p := range config.NativeParameters() {
		defaults := strings.Split(p.Default, ", ")
		for i, name := range p.Names {
			value, given := params[name]
			text := defaults[min(i, len(defaults)-1)]
			if !given || value == nil || text == "model preset" {
				continue
			}
			var want any
			require.NoError(t, yaml.Unmarshal([]byte(text), &want))
			assert.EqualValues(t, fmt.Sprint(want), fmt.Sprint(value), name)
			compared++
		}
	}
	assert.Greater(t, compared, 20)
}

func TestConfigParameters(t *testing.T) {
	t.Parallel()
	var shown []config.Parameters
	got := commandtest.Run(t, "config", "parameters", "lr_warmup_init", "muon_*", "-o", "json")
	require.NoError(t, json.Unmarshal([]byte(got.Out), &shown), got.Stderr)
	require.Len(t, shown, 2)
	assert.Equal(t, config.Parameters{Names: []string{"lr_warmup_init"}, Meaning: "learning rate from which the warm-up rises", Default: "0"}, shown[0])
	assert.Contains(t, shown[1].Names, "muon_momentum")

	all := commandtest.Run(t, "config", "parameters")
	assert.NotContains(t, all.Out, "](", "links are those of the page")
	assert.Contains(t, all.Out, "clip_grad")

	wrong := commandtest.Run(t, "config", "parameters", "clip_grd", "[")
	assert.Equal(t, 2, wrong.Code)
	assert.Contains(t, wrong.Stderr, `given "clip_grd", want the name of a parameter of the native backend or a pattern such as 'rope_*'; did you mean "clip_grad"?`)
	assert.Contains(t, wrong.Stderr, `given "[", want`)
}

func TestParametersPage(t *testing.T) {
	t.Parallel()
	var page strings.Builder
	page.WriteString("| key | meaning | default |\n|---|---|---|\n")
	for _, p := range config.NativeParameters() {
		fmt.Fprintf(&page, "| `%s` | %s | %s |\n", strings.Join(p.Names, "` `"), p.Meaning, p.Default)
	}
	name := filepath.Join("..", "..", "..", "..", "..", "docs", "reference", "parameters.md")
	goldentest.Section(t, name, "go test ./cmd/primus/command/internal/config -run TestParametersPage -update", page.String())
}
