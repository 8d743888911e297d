package patch_test

import (
	"testing"

	"github.com/primus-fl/primus/runtime/patch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func wrapWith(id, mark string) patch.Patch {
	return patch.Patch{ID: id, Apply: func(c *patch.Context) error {
		return patch.Wrap(c, greet, func(next func() string) func() string {
			return func() string { return mark + next() + mark }
		})
	}}
}

func replaceWith(id, text string) patch.Patch {
	return patch.Patch{ID: id, Apply: func(c *patch.Context) error {
		return patch.Replace(c, greet, func() string { return text })
	}}
}

func TestLayers(t *testing.T) {
	tests := []struct {
		name    string
		patches []patch.Patch
		want    string
		shown   string
		undo    string
		then    string
	}{
		{"later wraps earlier", []patch.Patch{wrapWith("a", "a"), wrapWith("b", "b")}, "bahelloab",
			"test.greet: b wraps a wraps the original", "a", "bhellob"},
		{"wrap of a replacement", []patch.Patch{replaceWith("a", "bye"), wrapWith("b", "b")}, "bbyeb",
			"test.greet: b wraps a replaces the original", "a", "bhellob"},
		{"replacement of a wrap", []patch.Patch{wrapWith("a", "a"), replaceWith("b", "bye")}, "bye",
			"test.greet: b replaces a wraps the original", "b", "ahelloa"},
		{"one patch twice", []patch.Patch{{ID: "a", Apply: func(c *patch.Context) error {
			if err := wrapWith("", "x").Apply(c); err != nil {
				return err
			}
			return wrapWith("", "y").Apply(c)
		}}}, "yxhelloxy", "test.greet: a wraps a wraps the original", "a", "hello"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			log := &lines{}
			c, slot, _ := extensible(t, log)
			_, err := newSet(t, tt.patches...).Run(c, patch.Options{StopOnError: true})
			require.NoError(t, err)
			assert.Equal(t, tt.want, slot.Func()())
			assert.Equal(t, "hello", slot.Original()())
			assert.Equal(t, tt.shown, c.Points.List()[0].String())
			assert.Equal(t, tt.name == "replacement of a wrap", log.has("warn", "b replaces test.greet", "a has no effect"))
			assert.Equal(t, 1, c.Points.Undo(tt.undo))
			assert.Equal(t, tt.then, slot.Func()())
			assert.Zero(t, c.Points.Undo("nobody"))
		})
	}
}

func TestPointsThatAreNotThere(t *testing.T) {
	c, _, _ := extensible(t, &lines{})
	near := patch.NewPoint[func() string]("test.gret", "")
	assert.EqualError(t, patch.Replace(c, near, nil), `no extension point "test.gret": backend "x" has test.greet; did you mean "test.greet"?`)
	other := patch.NewPoint[func() int]("test.greet", "")
	assert.ErrorContains(t, patch.Replace(c, other, nil), `extension point "test.greet" has type`)
	c.Points = nil
	assert.ErrorContains(t, patch.Replace(c, greet, nil), `backend "x" has none in phase setup`)
	ps := &patch.Points{}
	patch.Declare(ps, greet, nil)
	assert.Panics(t, func() { patch.Declare(ps, greet, nil) })
}

func TestConflicts(t *testing.T) {
	a, b, c := patch.Patch{ID: "a", Symbols: []string{"x", "y"}}, patch.Patch{ID: "b", Symbols: []string{"y"}}, patch.Patch{ID: "c"}
	assert.Equal(t, map[string][]string{"y": {"a", "b"}}, patch.Conflicts([]*patch.Patch{&a, &b, &c}))
}
