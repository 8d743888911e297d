package chat_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/tokenizer/chat"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// conversations are the variables of the differential test as JSON.
var conversations = map[string]string{
	"short":  `{"messages": [{"role": "user", "content": "Hi"}], "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": true}`,
	"system": `{"messages": [{"role": "system", "content": " Be good. "}, {"role": "user", "content": "Say \"é\" <b> & 'x'\n"}, {"role": "assistant", "content": "Yo 👋\n\nok"}, {"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "<think>\nsum\n</think>\n\n4"}], "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": false}`,
	"tools":  `{"messages": [{"role": "user", "content": "Weather?"}, {"role": "assistant", "content": null, "tool_calls": [{"type": "function", "function": {"name": "weather", "arguments": {"city": "Zürich", "n": 1.5, "deep": {"a": [1, true, null]}}}}]}, {"role": "tool", "content": "sunny"}, {"role": "tool", "content": "warm"}, {"role": "assistant", "content": "Sunny."}], "tools": [{"type": "function", "function": {"name": "weather", "description": "says < or >", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}], "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": true}`,
	"wrong":  `{"messages": [{"role": "assistant", "content": "no"}, {"role": "assistant", "content": "again"}], "bos_token": "", "eos_token": "", "add_generation_prompt": false}`,
}

// snippets are small templates, each about one matter.
var snippets = []string{
	"{{ (messages[0].content if messages else 'none') }}{{ none is none }}{{ missing is defined }}{{ 1.0 }}{{ 10 // 3 }}{{ -7 // 2 }}{{ -7 % 3 }}{{ 2 ** 3 }}{{ 'a' ~ 1 ~ none }}{{ true }}",
	"{{ 5 is odd }}{{ messages is iterable }}{{ messages[0] is mapping }}{{ 1 < 2 < 3 }}{{ not true or true and false }}{{ -1 | abs }}{{ 'a' 'b' }}{{ 7 / 2 }}{{ 3 is not even }}{{ 1 is number and 'x' is string }}",
	"{% for i in range(3) %}{{ x is defined }}{% set x = 1 %}{% endfor %}{{ x is defined }}",
	"{% set x = 0 %}{% for i in [1, 2] %}{{ x }}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}",
	"{% set ns = namespace(x=0, y='a') %}{% for i in [1, 2] %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}{{ ns.y }}{{ ns.z is defined }}",
	"{% if true %}{% set y = 1 %}{% endif %}{{ y }}",
	"{% for m in messages if m.role != 'system' %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.cycle('a', 'b') }}{{ loop.depth }}{% else %}none{% endfor %}",
	"{% for m in messages %}{{ loop.previtem.role if loop.previtem is defined }}>{{ loop.nextitem.role if not loop.last else 'end' }} {% for n in 'ab' %}{{ loop.depth }}{% endfor %}{% endfor %}",
	"{% for x in [] %}{% else %}empty{% endfor %}{% for a, b in [[1, 2], (3, 4)] %}{{ a }}{{ b }}{% endfor %}{% for k, v in {'a': 1, 'b': [1, 2]}.items() %}{{ k }}={{ v }};{% endfor %}",
	"{%- for i in range(5) -%}{%- if i == 3 -%}{%- break -%}{%- endif -%}{%- if i == 1 -%}{%- continue -%}{%- endif -%}{{ i }}{%- endfor -%}",
	"{%- macro f(x, y=2, z='q') %}[{{ x }}{{ y }}{{ z }}]{% endmacro %}{{ f(1) }}{{ f(1, y=3) }}{{ f(1, 2, 3) }}{{ f() }}",
	"{% macro g(n) %}{{ n }}{% if n > 0 %}{{ g(n - 1) }}{% endif %}{% endmacro %}{{ g(3) }}",
	"{% set x %}block {{ 1 }}{% endset %}{{ x }}{% set y | upper %}up{% endset %}{{ y }}{% filter upper | replace('B', 'x') %}abc{% endfilter %}",
	"  {% if true %}\n  a\n  {% endif %}\n  b\n", "a {%- if true %} b {%- endif -%} c\n\n d", "{# c #}\nx{#- d -#} y {{- 'z' -}} w", "a\n  {%+ if true %} b{% endif +%}\n c", "x  {% raw %} {{ y }} {% z %} {% endraw %}\n w", "{% raw -%}  a  {%- endraw %} b", "a\r\nb\r{{ 1 }}\r\n",
	"{{ 'a{{b}}' }}{{ \"it's\" }}{{ 'tab\\tnl\\nq\\'q\\x41\\u00e9\\\\d' }}", "{{ {'a': {'b': 1}}['a']['b'] }}{{ {'a': 1}.a }}{{ [1, 2, 3][-1] }}{{ (1, 2)[0] }}{{ messages.0.role }}",
	"{{ 'héllo'[1] }}{{ 'héllo'[1:3] }}{{ 'héllo'[::-1] }}{{ [1, 2, 3, 4][1:] }}{{ [1, 2, 3, 4][:-1] }}{{ [1, 2, 3, 4][::2] }}{{ [1, 2, 3][::-1] }}{{ [1, 2, 3][5:] }}{{ 'abc'[-5:2] }}{{ [1, 2, 3, 4, 5][4:0:-2] }}",
	"{{ messages | tojson }}", "{{ messages[0] | tojson(indent=4) }}|{{ {} | tojson(indent=2) }}{{ [] | tojson(indent=2) }}{{ {'b': 1, 'a': [1.0, 1e30, true, none, 'é\\n\"\\\\/']} | tojson(ensure_ascii=true, sort_keys=true, separators=(',', ':')) }}",
	"{{ {'a': 1, 'b': 'c'} }}{{ [1, 'x', none, true, 1.5, \"it's\", 'q\"q', '\\n'] }}{{ (1,) }}{{ () }}{{ 1e20 }}{{ 1e-5 }}{{ 0.1 + 0.2 }}{{ 100000000000000000000.0 }}",
	"{{ messages | map(attribute='role') | join(', ') }}|{{ messages | selectattr('role', 'equalto', 'user') | list | length }}|{{ messages | rejectattr('role', '==', 'user') | map(attribute='content') | list }}",
	"{{ messages | map(attribute='nope', default='d') | join(',') }}{{ ['a', 'b'] | map('upper') | list }}{{ ['a ', 'b '] | map('replace', 'a', 'x') | map('trim') | join('-') }}{{ range(6) | select('odd') | list }}{{ range(6) | reject('divisibleby', 3) | list }}{{ [0, 1, ''] | select | list }}",
	"{{ [3, 1, 2] | sort }}{{ ['b', 'A', 'c'] | sort }}{{ ['b', 'A'] | sort(case_sensitive=true, reverse=true) }}{{ messages | sort(attribute='role') | map(attribute='role') | list }}{{ [1, 2, 1] | unique | list }}{{ [1, 5, 3] | max }}{{ [4, 2] | min }}{{ [1, 2.5] | sum }}",
	"{{ 'x,y'.split(',') }}{{ ' a  b '.split() }}{{ 'a,b,c'.split(',', 1) }}{{ 'a,b,c'.rsplit(',', 1) }}{{ ' a b  c'.rsplit(none, 1) }}{{ 'a b c'.split(none, 1) }}{{ 'a\\nb\\n'.splitlines() }}{{ ''.split(',') }}{{ ''.split() }}",
	"{{ 'a</think>b</think>\\nc'.split('</think>')[-1].lstrip('\\n') }}{{ 'xx\\n'.rstrip('\\n').strip('x') }}{{ ' x '.strip() }}{{ 'abc'.startswith('a') }}{{ 'abc'.endswith(('x', 'c')) }}{{ 'aXa'.replace('a', 'b', 1) }}{{ 'é'.upper() }}{{ 'hello wORLD'.title() }}{{ 'hELLO'.capitalize() }}",
	"{{ 'éab'|replace('', '-') }}{{ 'éab'|replace('', '-', 2) }}{{ ''|replace('', '-') }}{{ 'aaa'|replace('aa', 'b') }}{{ 'abc'.replace('', '.', 9) }}{{ ' a  b\\tc '|wordcount }}{{ ''|wordcount }}{{ 'a\\n\\nb\\n'|indent(2) }}{{ 'a\\n\\nb'|indent('>', true, true) }}{{ 'é1 ab'|title }}{{ ' \\n'.isspace() }}{{ 'a b  c'.split() }}{{ 'a b  c'.rsplit(' ', 1) }}{{ 'a\\nb\\n'.splitlines() }}",
	"{{ 'abcabc'.find('c') }}{{ 'abcabc'.rfind('é') }}{{ 'abcabc'.count('ab') }}{{ 'abc'.index('b') }}{{ '-'.join(['a', 'b']) }}{{ '12'.isdigit() }}{{ 'a1'.isalnum() }}{{ 'a1'.isalpha() }}{{ 'x'.removeprefix('x') }}{{ 'ab'.removesuffix('b') }}",
	"{{ missing }}|{{ missing | default('d') }}{{ '' | default('d', true) }}{{ none | d('x') }}{{ missing | length }}{{ missing | list }}{{ missing == missing2 }}{{ 'a' in missing }}{{ not missing }}{{ messages[0]['nope'] is undefined }}{{ messages[0].get('nope') }}{{ messages[0].get('nope', 'd') }}{{ none.x is defined }}",
	"{{ 'ab' in 'cabd' }}{{ 1 in [1, 2] }}{{ 'role' in messages[0] }}{{ 3 not in (1, 2) }}{{ 1 == 1.0 }}{{ 1 == true }}{{ 'a' < 'b' }}{{ [1, 2] < [1, 3] }}{{ (1, 2) == [1, 2] }}{{ none == none }}{{ 'a' != 'b' }}",
	"{{ messages | first }}{{ 'abc' | last }}{{ 'abc' | reverse }}{{ [1, 2] | reverse | list }}{{ 'a b c' | wordcount }}{{ 3.7 | int }}{{ '12' | int }}{{ 'x' | int(5) }}{{ '1.5' | float }}{{ 2.5 | round }}{{ 3.14159 | round(2) }}{{ 42 | string }}{{ 'Ab' | lower }}{{ 'x' | capitalize }}",
	"{{ 'a\\nb\\n\\nc' | indent }}|{{ 'a\\nb' | indent(2, true) }}|{{ {'b': 1, 'a': 2} | dictsort }}{{ {'b': 1, 'a': 2} | items | list }}{{ {'b': 1}.keys() | list }}{{ {'b': 1}.values() | list }}{{ '<a & \"b\">' | e }}",
	"{{ 'a' * 3 }}{{ [1] * 2 }}{{ [1] + [2] }}{{ 'a' + 'b' }}{{ 1 + 2 * 3 - 4 }}{{ (1 + 2) * 3 }}{{ 2 ** 3 ** 2 }}{{ -2 ** 2 }}{{ 1 - -1 }}{{ true + 1 }}{{ 7.5 // 2 }}{{ 7.5 % 2 }}{{ 1_000 }}",
	"{{ 'a' if false }}|{{ 'a' if false else 'b' if false else 'c' }}{{ x if x is defined else 'no' }}", "{{ messages[0].content is string and messages[0].content.startswith('H') }}{{ messages is sequence }}{{ 'a' is sameas 'a' }}{{ true is true }}{{ 0 is false }}{{ 1 is boolean }}{{ 1.5 is float }}{{ 2 is integer }}{{ 'ab' is lower }}",
	"{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (c, d) = [3, 4] %}{{ c + d }}{% set e = 1, 2 %}{{ e }}", "{{ 1 is eq 1 }}{{ 2 is gt 1 }}{{ 1 is le(1) }}{{ 'a' is in 'abc' }}{{ 'a' is in ['b'] }}{{ 4 is divisibleby 2 }}",
	"{{ loop is defined }}{{ range(1, 7, 2) | list }}{{ range(3, 0, -1) | list }}{{ dict(a=1) }}{{ namespace(a=1).a }}", "{% for c in 'hé' %}{{ c }}.{% endfor %}{% for k in {'x': 1} %}{{ k }}{% endfor %}",
	"a{% generation %}b{{ 1 }}{% endgeneration %}c", "{% for i in [1, 2] %}{% for j in [3] %}{{ i }}{{ j }}{{ loop.first }}{% endfor %}{{ loop.last }}{% endfor %}", "{% if messages|length > 1 and messages[1].role == 'user' %}y{% elif messages %}z{% else %}n{% endif %}",
	// Errors.
	"{{ missing.x }}", "{{ missing['x'] }}", "{{ missing + 1 }}", "{{ 'a' + 1 }}", "{{ 1 / 0 }}", "{{ missing() }}", "{{ none() }}", "{{ 'a' < 1 }}", "{{ 1 in 'a' }}", "{% for x in 5 %}{% endfor %}", "{{ range(10 ** 9) }}", "{{ missing | tojson }}",
	"{% if %}{% endif %}", "{% for x %}{% endfor %}", "{% endif %}", "{{ 1 + }}", "{{ 'a }}", "{{ [1 }}", "{% if true %}", "{{ a b }}", "{% set %}", "{{ x | nope }}", "{{ x is nope }}", "{% nope %}", "{# x", "{{", "{{ }}", "{% for a, b in [[1]] %}{% endfor %}", "{{ messages.append(1) }}", "{{ '%d' is defined", "{{ raise_exception('no') }}",
	"{% set x.y = 1 %}", "{{ 'a'.index('b') }}", "{{ ''.split('') }}", "{% set true = 1 %}", "{{ {'a'} }}", "{{ {[1]: 2} }}", "{% macro f(a=1, b) %}{% endmacro %}", "{{ 1 | int(1, 2, 3, 4, 5) }}",
}

type rendered struct {
	Text  *string `json:"text"`
	Error string  `json:"error"`
}

// withJinja renders templates with Jinja.
func withJinja(t *testing.T, cases []map[string]any) []rendered {
	t.Helper()
	python := primustest.Python(t, "jinja2")
	var in bytes.Buffer
	for _, c := range cases {
		require.NoError(t, json.NewEncoder(&in).Encode(c))
	}
	cmd := exec.Command(python, filepath.Join("testdata", "render.py"))
	cmd.Stdin, cmd.Stderr = &in, os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	var all []rendered
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var r rendered
		require.NoError(t, json.Unmarshal(lines.Bytes(), &r))
		all = append(all, r)
	}
	require.Len(t, all, len(cases))
	return all
}

// vars returns variables of a template from a JSON object.
func vars(t *testing.T, text string) chat.Vars {
	t.Helper()
	parsed, err := chat.ParseJSON([]byte(text))
	require.NoError(t, err)
	v := chat.Vars{}
	for _, name := range []string{"messages", "tools", "bos_token", "eos_token", "add_generation_prompt", "enable_thinking"} {
		if value, ok := parsed.(*chat.Map).Get(name); ok {
			v[name] = value
		}
	}
	return v
}

// Templates give what Jinja gives, or an error where Jinja has one.
func TestJinja(t *testing.T) {
	t.Parallel()
	templates := append([]string{}, snippets...)
	files, err := filepath.Glob(filepath.Join("te*", "*.jinja"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 8)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		templates = append(templates, string(text))
	}
	var cases []map[string]any
	for _, template := range templates {
		for _, c := range conversations {
			cases = append(cases, map[string]any{"template": template, "vars": json.RawMessage(c)})
		}
	}
	failed := 0
	for i, want := range withJinja(t, cases) {
		template := cases[i]["template"].(string)
		v := vars(t, string(cases[i]["vars"].(json.RawMessage)))
		parsed, err := chat.Parse(template)
		got := ""
		if err == nil {
			var spans []chat.Span
			got, spans, err = parsed.Render(t.Context(), v, time.Now())
			for k := len(spans) - 1; k >= 0; k-- {
				got = got[:spans[k].Begin] + "\x01" + got[spans[k].Begin:spans[k].End] + "\x02" + got[spans[k].End:]
			}
		}
		if want.Text == nil {
			failed++
			assert.Error(t, err, "%s\nJinja: %s", template, want.Error)
			continue
		}
		if assert.NoError(t, err, template) {
			assert.Equal(t, *want.Text, got, template)
		}
	}
	assert.Less(t, failed, len(cases)/2)
	assert.Greater(t, strings.Count(strings.Join(templates, ""), "{%"), 100)
}
