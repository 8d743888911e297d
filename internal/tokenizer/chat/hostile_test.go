package chat_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/meter"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/tokenizer/chat"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// growing are templates that make a value ns.x that is large, or that holds few things many times.
var growing = []string{
	`{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}`,
	`{% set ns = namespace(x=['ab','c']) %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}`,
	`{% set ns = namespace(x=['ab']) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}`,
	`{% set ns = namespace(x={'a':'b'}) %}{% for i in range(60) %}{% set ns.x = {'a': ns.x, 'b': ns.x} %}{% endfor %}`,
	`{% set ns = namespace(x='ab' * 9000000) %}`,
	`{% set ns = namespace(x=[]) %}{% for i in range(90000) %}{% set ns.x = [ns.x] %}{% endfor %}`,
	`{% set ns = namespace(x=10) %}{% for i in range(60) %}{% set ns.x = ns.x ** ns.x %}{% endfor %}`,
	`{% set ns = namespace(x=range(90000)|list) %}`,
	`{% set ns = namespace(x=('a'*1000000)|list) %}`,
	`{% set ns = namespace(x='ab' * 400000) %}`,
}

// using are expressions that go through all of a value, alone and in loops.
var using = []string{
	`{{ ns.x }}`,
	`{{ ns.x|tojson }}`,
	`{{ ns.x == ns.x }}`,
	`{{ ns.x < ns.x }}`,
	`{{ ns.x|length }}`,
	`{{ ns.x|string|upper }}`,
	`{{ 'zz' in ns.x }}`,
	`{% if ns.x == [1] %}{% endif %}`,
	`{% set y = ns.x|list %}`,
	`{% set y = ns.x|upper %}`,
	`{% set y = ns.x|trim %}`,
	`{% set y = ns.x|replace('a','') %}`,
	`{% set y = ns.x[::-1] %}`,
	`{% set y = ns.x|sort %}`,
	`{% set y = ns.x|unique|list %}`,
	`{% set y = ns.x.split('q') %}`,
	`{% set y = ns.x|join('') %}`,
	`{% set y = ns.x|length %}`,
	`{% set y = ns.x|last %}`,
	`{% set y = ns.x|first %}`,
	`{% set y = ns.x|indent %}`,
	`{% set y = ns.x|reverse %}`,
	`{% set y = ns.x.startswith('q') %}`,
	`{% set y = ns.x|int %}`,
	`{% set y = ns.x|default('') %}`,
	`{% set y = ns.x.count('q') %}`,
	`{% set y = ns.x|string %}`,
	`{% set y = ns.x ~ 'a' %}`,
	`{% set y = ns.x|map('upper')|list %}`,
	`{% set y = {ns.x: 1} %}`,
	`{% set y = ns.x|select('string')|list %}`,
	`{% set y = ns.x|max %}`,
}

// hostile returns the templates of one seed: each way to grow a value, used in some way.
func hostile(seed uint64) []string {
	random := rand.New(rand.NewPCG(seed, 34))
	all := []string{`{% macro a(x) %}{{ a(x) ~ a(x) }}{% endmacro %}{{ a('') }}`}
	for _, grow := range growing {
		for range 3 {
			use := using[random.IntN(len(using))]
			if random.IntN(2) > 0 {
				use = "{% for i in range(90000) %}" + use + "{% endfor %}"
			}
			all = append(all, grow+use)
		}
	}
	return all
}

// A template whose work is without bound ends with an error, whatever value it makes and however it
// uses it.
func TestHostileTemplates(t *testing.T) {
	t.Parallel()
	over := 0
	all := hostile(1)
	primustest.Documented(t, "chat templates", len(all))
	for _, source := range all {
		text, _, err := parse(t, source).Render(t.Context(), nil, time.Time{})
		if fault, ok := err.(*chat.Error); err != nil && assert.True(t, ok, "%s: %v", source, err) && fault.Err != nil { //nolint:errorlint // never wrapped
			over++
			limit := &meter.Error{}
			require.ErrorAs(t, err, &limit, source)
			assert.ErrorContains(t, err, "the chat template takes more than")
		}
		assert.LessOrEqual(t, len(text), 16<<20)
	}
	assert.Positive(t, over)
}

// Work ends when nobody waits for it.
func TestTemplatesEndWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, use := range using[:4] {
		source := growing[2] + strings.Repeat(use, 2)
		_, _, err := parse(t, source).Render(ctx, nil, time.Time{})
		assert.ErrorIs(t, err, context.Canceled, source)
	}
}
