package suggest_test

import (
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/suggest"
	"github.com/stretchr/testify/assert"
)

func TestNearest(t *testing.T) {
	names := []string{"flagos", "vendor", "reference", "num_layers", "router_topk_mode"}
	tests := []struct{ give, want string }{
		{"vendro", "vendor"},
		{"Flagso", "flagos"},
		{"reference", "reference"},
		{"refrence", "reference"},
		{"cuda", ""},
		{"num-layer", "num_layers"},
		{"router", "router_topk_mode"},
		{"rout", ""},
		{"num", ""},
		{strings.Repeat("x", 1000), ""},
		{"", ""},
	}
	for _, tt := range tests {
		got, ok := suggest.Nearest(tt.give, names)
		assert.Equal(t, tt.want, got, "%q", tt.give)
		assert.Equal(t, tt.want != "", ok, "%q", tt.give)
	}
}

func TestDistance(t *testing.T) {
	tests := []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"abc", "", 3},
		{"", "abc", 3},
		{"abc", "acb", 1},
		{"kitten", "sitting", 3},
	}
	for _, tt := range tests {
		assert.Equal(t, tt.want, suggest.Distance(tt.a, tt.b), "%q %q", tt.a, tt.b)
		assert.Equal(t, tt.want, suggest.Distance(tt.b, tt.a), "%q %q", tt.b, tt.a)
	}
}

func TestHint(t *testing.T) {
	names := []string{"rmsnorm_fwd", "rmsnorm_bwd"}
	assert.Equal(t, `did you mean "rmsnorm_fwd"?`, suggest.Question("rmsnrom-fwd", names))
	assert.Equal(t, `; did you mean "rmsnorm_fwd"?`, suggest.Hint("rmsnrom-fwd", names))
	assert.Empty(t, suggest.Question("softmax", names))
	assert.Empty(t, suggest.Hint("softmax", names))
}
