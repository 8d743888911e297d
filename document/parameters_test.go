package document_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/document"
)

type colour string

func (colour) Values() []string { return []string{"red", "blue"} }

func TestParameters(t *testing.T) {
	t.Parallel()
	type base struct {
		Seed int `param:"seed,required"`
	}
	type inner struct {
		Colour colour `param:"colour"`
	}
	var args struct {
		base
		Fast   *bool `param:"fast"`
		Nested inner `param:"nested"`
		Silent int
		Off    int `param:"-"`
	}
	assert.Equal(t, []document.Parameter{
		{Name: "fast", Values: []string{"true", "false"}}, {Name: "nested.colour", Values: []string{"red", "blue"}}, {Name: "seed"},
	}, document.Parameters(&args))
}
