package document_test

import (
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/formats"
)

type optimizer struct {
	LR    float64    `param:"lr,required"`
	Betas [2]float32 `param:"betas"`
}

type common struct {
	Seed uint32 `param:"seed"`
}

type target struct {
	common
	Optimizer optimizer          `param:"optimizer"`
	Layers    int                `param:"num_layers"`
	Name      string             `param:"name"`
	Save      *string            `param:"save"`
	Bias      bool               `param:"bias"`
	Timeout   time.Duration      `param:"timeout"`
	Address   netip.Addr         `param:"address"`
	Weights   map[string]float64 `param:"weights"`
	Any       any                `param:"any"`
	Raw       document.Value     `param:"raw"`
	Sub       *document.Map      `param:"sub"`
	Sizes     []int8             `param:"sizes"`
	When      time.Time          `param:"when"`
	Untagged  int
	hidden    int
}

func fromYAML(t *testing.T, text string) *document.Map {
	t.Helper()
	root, _, err := formats.All().Parse(t.Context(), "x.yaml", []byte(text))
	require.NoError(t, err)
	m, ok := root.Map()
	require.True(t, ok)
	return m
}

// params parses overrides as a quick way to a map.
func params(t *testing.T, tokens ...string) *document.Map {
	t.Helper()
	m, _, err := document.ParseOverrides(tokens)
	require.NoError(t, err)
	return m
}

func TestDecode(t *testing.T) {
	t.Parallel()
	old := "old"
	got := target{Name: "default", Save: &old, Untagged: 3, hidden: 4}
	unknown, err := document.Decode(fromYAML(t, `
seed: 7
optimizer: {lr: 1, betas: [0.5, 1], momentum: 2}
num_layers: 4.0
name: null
save: null
bias: true
timeout: 10s
address: 127.0.0.1
weights: {a: 1, b: 2.5}
any: [1, {k: v}]
raw: 2025-01-01
sub: {x: 1}
sizes: [1, -128]
when: 2025-01-02T03:04:05Z
num_layer: 3
`), &got)
	require.NoError(t, err)
	assert.Equal(t, uint32(7), got.Seed)
	assert.Equal(t, optimizer{LR: 1, Betas: [2]float32{0.5, 1}}, got.Optimizer)
	assert.Equal(t, 4, got.Layers)
	assert.Equal(t, "default", got.Name)
	assert.Nil(t, got.Save)
	assert.Equal(t, 10*time.Second, got.Timeout)
	assert.Equal(t, "127.0.0.1", got.Address.String())
	assert.Equal(t, map[string]float64{"a": 1, "b": 2.5}, got.Weights)
	assert.Equal(t, []any{int64(1), map[string]any{"k": "v"}}, got.Any)
	assert.Equal(t, document.KindDate, got.Raw.Kind())
	assert.Equal(t, 1, got.Sub.Len())
	assert.Equal(t, []int8{1, -128}, got.Sizes)
	assert.Equal(t, 2025, got.When.Year())
	assert.Equal(t, 7, got.Untagged+got.hidden)

	require.Len(t, unknown, 2)
	assert.Equal(t, "optimizer.momentum", unknown[0].Path)
	assert.Equal(t, "num_layer", unknown[1].Path)
	assert.Equal(t, "num_layers", unknown[1].Nearest)
	assert.Positive(t, unknown[1].Origin.Line)
}

func TestDecodeCollectsAllProblems(t *testing.T) {
	t.Parallel()
	var got target
	_, err := document.Decode(fromYAML(t, `
seed: -1
optimizer: {betas: [1.0]}
num_layers: 4.5
name: 42
save: [1]
bias: "yes"
timeout: 10
address: nowhere
weights: {a: x}
sub: 3
sizes: [1, 128, null]
`), &got)
	require.Error(t, err)
	for _, want := range []string{
		"x.yaml:2:7: seed: given int -1, want 0 to 4294967295",
		"optimizer.lr: required key is missing",
		"optimizer.betas: given a list of 1, want a list of 2",
		"num_layers: given float 4.5, want a whole number",
		"name: given int 42, want a string; quote it if it is text",
		"save: given a list of 1, want a string",
		`bias: given string "yes", want true or false`,
		"timeout: given int 10, want a duration string such as 10s",
		`address: given string "nowhere"`,
		`weights.a: given string "x", want a number`,
		"sub: given int 3, want a mapping",
		"sizes[1]: given int 128, want -128 to 127",
		"sizes[2]: given null, want a whole number",
	} {
		assert.ErrorContains(t, err, want)
	}
}

func TestDecodeGuessedScalars(t *testing.T) {
	t.Parallel()
	var got struct {
		Name  string  `param:"name"`
		LR    float64 `param:"lr"`
		Steps int     `param:"steps"`
	}
	_, err := document.Decode(params(t, "name=007", "lr=1e-4", "steps=1e3"), &got)
	require.NoError(t, err)
	assert.Equal(t, "007", got.Name)
	assert.InDelta(t, 1e-4, got.LR, 0)
	assert.Equal(t, 1000, got.Steps)

	_, err = document.Decode(params(t, "lr=[1]", "steps=99999999999999999999"), &got)
	require.ErrorContains(t, err, `override 1 "lr=[1]": lr: given a list of 1, want a number`)
	require.ErrorContains(t, err, "steps: given int 99999999999999999999, want -9223372036854775808 to 9223372036854775807")

	_, err = document.Decode(params(t, "lr=inf."), &got)
	require.Error(t, err)
	_, err = document.Decode(params(t, "lr=1e999"), &got)
	require.NoError(t, err)
	assert.True(t, math.IsInf(got.LR, 1))
}

func TestDecodeExplainsYAMLFloats(t *testing.T) {
	t.Parallel()
	var got struct {
		LR float64 `param:"lr"`
	}
	_, err := document.Decode(fromYAML(t, "lr: 3e-4\n"), &got)
	require.ErrorContains(t, err, `lr: given string "3e-4", want a number; YAML 1.1 reads 3e-4 as text, write 3.0e-4`)
	_, err = document.Decode(fromYAML(t, "lr: 1.5E12\n"), &got)
	require.ErrorContains(t, err, "write 1.5e+12")
}

func TestDecodeRefusesOtherTargets(t *testing.T) {
	t.Parallel()
	var number int
	for _, into := range []any{nil, target{}, &number, (*target)(nil)} {
		_, err := document.Decode(nil, into)
		require.ErrorContains(t, err, "want a pointer to a struct")
	}
}
