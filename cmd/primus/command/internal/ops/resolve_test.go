package ops_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/goldentest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type policyView struct {
	Prefer  string              `json:"prefer"`
	Strict  bool                `json:"strict"`
	PerOp   map[string][]string `json:"per_op_order"`
	Deny    []string            `json:"deny_vendors"`
	Allow   []string            `json:"allow_vendors"`
	Sources map[string]string   `json:"sources"`
}

type resolution struct {
	Policy     policyView `json:"policy"`
	Candidates []string   `json:"candidates"`
	Selected   string     `json:"selected"`
	Rejected   []struct {
		ID     string `json:"impl_id"`
		Reason string `json:"reason"`
	} `json:"rejected"`
	Warnings []string `json:"warnings"`
	Error    *struct{ Code, Message string }
}

// resolveOp asks for an op of a catalogue on standard input, with the output JSON.
func resolveOp(t *testing.T, op, catalog string) (resolution, commandtest.Outcome) {
	t.Helper()
	var out, stderr primustest.Buffer
	code := command.Main([]string{"ops", "resolve", "--catalog", "-", "-o", "json", "--", op},
		command.Streams{Out: &out, Err: &stderr, In: strings.NewReader(catalog)})
	got := commandtest.Outcome{Code: code, Out: out.String(), Stderr: stderr.String()}
	var r resolution
	require.NoError(t, json.Unmarshal([]byte(got.Out), &r), "%+v", got)
	assert.Empty(t, got.Stderr)
	return r, got
}

// TestConformance replays the selection cases that were recorded from the public system through the
// command line, with the answers that this project's rules give.
func TestConformance(t *testing.T) {
	ran := 0
	primustest.EachLine(t, primustest.Recorded(t, "te-fl", "conformance.jsonl"), func(line []byte) {
		var f struct {
			ID    string            `json:"id"`
			Op    string            `json:"op"`
			Env   map[string]string `json:"env"`
			Impls json.RawMessage   `json:"impls"`
			Bug   string            `json:"upstream_bug"`
			Ours  *struct {
				Candidates []string `json:"candidates"`
				Error      string   `json:"error"`
			} `json:"ours"`
			Expected struct {
				Policy *policyView `json:"policy"`
			} `json:"expected"`
		}
		require.NoError(t, json.Unmarshal(line, &f))
		if f.Ours == nil {
			return
		}
		ran++
		t.Run(f.ID, func(t *testing.T) {
			for name, value := range f.Env {
				t.Setenv(name, value)
			}
			r, got := resolveOp(t, f.Op, string(f.Impls))
			if f.Ours.Error != "" {
				require.NotNil(t, r.Error, got.Out)
				assert.Equal(t, f.Ours.Error, r.Error.Code)
				assert.NotEmpty(t, r.Error.Message)
				assert.Equal(t, 1, got.Code)
				return
			}
			require.Nil(t, r.Error, got.Out)
			assert.Zero(t, got.Code)
			assert.Equal(t, f.Ours.Candidates, r.Candidates)
			assert.Equal(t, f.Ours.Candidates[0], r.Selected)
			for _, rej := range r.Rejected {
				assert.NotEmpty(t, rej.Reason)
				assert.NotContains(t, r.Candidates, rej.ID)
			}
			if f.Bug == "" && f.Expected.Policy != nil {
				want := *f.Expected.Policy
				for _, names := range [][]string{want.Allow, want.Deny} {
					for i := range names {
						names[i] = strings.ToLower(names[i])
					}
					slices.Sort(names)
				}
				want.Sources, want.Strict = r.Policy.Sources, r.Policy.Strict // more spellings are on here
				assert.Equal(t, want, r.Policy)
			}
		})
	})
	require.Positive(t, ran)
}

const smallCatalog = `[
  {"op": "gemm", "impl_id": "default.flagos", "kind": "default", "priority": 150},
  {"op": "gemm", "impl_id": "vendor.acme", "kind": "vendor", "vendor": "Acme", "priority": 100, "available": true},
  {"op": "gemm", "impl_id": "vendor.zeta", "kind": "vendor", "vendor": "zeta", "priority": 100, "available": "no driver <12>"},
  {"op": "gemm", "impl_id": "reference.go", "kind": "reference", "vendor": null, "priority": 50, "available": false},
  {"op": "norm", "impl_id": "vendor.odd", "kind": "vendor", "vendor": "odd", "available": {"return": "no"}},
  {"op": "norm", "impl_id": "vendor.even", "kind": "vendor", "vendor": "even", "available": {"reason": "too old"}},
  {"op": "norm", "impl_id": "vendor.fine", "kind": "VENDOR", "vendor": "fine", "available": {"return": true}}
]
`

func writeCatalog(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "impls.json")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	return file
}

func TestResolveGolden(t *testing.T) {
	t.Setenv("TE_FL_PREFER", "Vendor")
	t.Setenv("TE_FL_DENY_VENDORS", "zeta,acmee")
	t.Setenv("TE_FL_PER_OP", "gemm=reference|vendor;nrom=flagos|default")
	_, got := resolveOp(t, "gemm", smallCatalog)
	assert.Zero(t, got.Code)
	goldentest.Check(t, "resolve.json", got.Out)
}

func TestResolveErrorGolden(t *testing.T) {
	t.Setenv("TE_FL_PER_OP", "gemm=reference")
	_, got := resolveOp(t, "gemm", smallCatalog)
	assert.Equal(t, 1, got.Code)
	goldentest.Check(t, "resolve_no_candidate.json", got.Out)
}

func TestResolveTable(t *testing.T) {
	t.Setenv("TE_FL_DENY_VENDORS", "acmee")
	got := commandtest.Run(t, "ops", "resolve", "norm", "--catalog", writeCatalog(t, smallCatalog))
	assert.Zero(t, got.Code)
	goldentest.Check(t, "resolve.txt", got.Out)
	assert.Contains(t, got.Stderr, `WARN  policy: environment TE_FL_DENY_VENDORS names vendor "acmee", which the catalogue does not list; did you mean "acme"?`)
}

// Bad values of the environment give exit code 2 like everywhere, and with -o json the code policy
// and exit code 1.
func TestResolveBadEnvironment(t *testing.T) {
	tests := []struct {
		variable, value string
		want            []string
	}{
		{"TE_FL_STRICT", "ture", []string{"at 1", `"ture" is not a switch`, "true"}},
		{"TE_FL_PREFER_VENDOR", "2", []string{"at 1", "want 1, true, yes or on"}},
		{"TE_FL_SKIP_CUDA", " y", []string{"at 2", "want 1, true, yes or on"}},
		{"TE_FL_PREFER", "vendro", []string{"at 1", "want flagos, vendor, reference or tuned", `did you mean "vendor"?`}},
		{"TE_FL_ALLOW_VENDORS", ",", []string{"at 1", "do not set the list"}},
		{"TE_FL_ALLOW_VENDORS", "acme nvidia", []string{"at 1", "separate names with commas"}},
		{"TE_FL_ALLOW_VENDORS", "acme,impl:vendor.acme", []string{"at 6", "per-op order as impl:ID"}},
		{"TE_FL_DENY_VENDORS", "acme;nvidia", []string{"at 1", "separate names with commas"}},
		{"TE_FL_DENY_VENDORS", "acme,flagos", []string{"at 6", `"flagos" is a kind of impl`}},
		{"TE_FL_PER_OP", "gemm", []string{"at 1", "has no =", "op=token|token"}},
		{"TE_FL_PER_OP", "gemm=flagos;gemm=vendor", []string{"at 13", "given twice, first at 1"}},
		{"TE_FL_PER_OP", "gemm=flagso", []string{"at 6", `did you mean "flagos"?`}},
		{"TE_FL_PER_OP", "gemm=vendor,flagos", []string{"at 6", "separate tokens with |"}},
		{"TE_FL_PER_OP", "gemm=vendor:", []string{"at 6", "want vendor:NAME"}},
		{"TE_FL_PER_OP", "gemm=impl:", []string{"at 6", "want impl:ID"}},
		{"TE_FL_PER_OP", "gemm=acme", []string{"at 6", `did you mean "vendor:acme"?`}},
	}
	catalog := writeCatalog(t, smallCatalog)
	for _, tt := range tests {
		t.Run(tt.variable+"="+tt.value, func(t *testing.T) {
			t.Setenv(tt.variable, tt.value)
			r, got := resolveOp(t, "gemm", smallCatalog)
			assert.Equal(t, 1, got.Code)
			require.NotNil(t, r.Error)
			assert.Equal(t, "policy", r.Error.Code)
			for _, part := range append(tt.want, "environment "+tt.variable) {
				assert.Contains(t, r.Error.Message, part)
			}
			for _, args := range [][]string{{"ops", "resolve", "gemm", "--catalog", catalog}, {"ops", "explain"}, {"policy", "show"}} {
				got := commandtest.Run(t, args...)
				assert.Equal(t, 2, got.Code, args)
				assert.Empty(t, got.Out)
				line := commandtest.OnlyError(t, got)
				for _, part := range append(tt.want, "environment "+tt.variable) {
					assert.Contains(t, line, part)
				}
			}
		})
	}
}

func TestResolveBadCatalog(t *testing.T) {
	entry := func(fields string) string { return "[\n  {\"op\": \"gemm\", \"impl_id\": \"a.b\", " + fields + "}\n]" }
	tests := []struct {
		name, give string
		want       []string
	}{
		{"empty", " \n", []string{":1:1: is empty"}},
		{"not JSON", "[\n  {\"op\": gemm}\n]", []string{":2:10: not JSON", "'g'"}},
		{"cut", "[{\"op\": \"gemm\"", []string{"not JSON", "unexpected end"}},
		{"text after", "[]\n[]", []string{":2:1: not JSON"}},
		{"not a list", ` {"impls": []}`, []string{":1:2: given an object, want a list"}},
		{"not an impl", `[1]`, []string{":1:2: given a number, want an impl"}},
		{"nested list", `[ [] ]`, []string{":1:3: given a list, want an impl"}},
		{"missing op", `[{"impl_id": "x", "kind": "flagos"}]`, []string{":1:2: op: is missing"}},
		{"missing id", `[{"op": "gemm", "kind": "flagos"}]`, []string{":1:2: impl_id: is missing"}},
		{"blank op", `[{"op": " ", "impl_id": "x", "kind": "flagos"}]`, []string{":1:9: op: is blank"}},
		{"missing kind", entry(`"priority": 1`), []string{":2:3: kind: is missing"}},
		{"unknown kind", entry(`"kind": "vendro"`), []string{`:2:44: kind: unknown kind "vendro"`, "want flagos, vendor or reference", `did you mean "vendor"?`}},
		{"wrong type of kind", entry(`"kind": 3`), []string{":2:44: kind: given 3, want a text"}},
		{"no vendor", entry(`"kind": "vendor"`), []string{`:2:3: vendor: impl "a.b" of op "gemm" has the kind vendor and no vendor`}},
		{"null vendor", entry(`"kind": "vendor", "vendor": null`), []string{":2:64: vendor:"}},
		{"blank vendor", entry(`"kind": "vendor", "vendor": " "`), []string{":2:64: vendor:"}},
		{"wrong type of vendor", entry(`"kind": "vendor", "vendor": ["x"]`), []string{`:2:64: vendor: given ["x"], want a text`}},
		{"fraction", entry(`"kind": "flagos", "priority": 1.5`), []string{":2:66: priority: given 1.5, want a whole number"}},
		{"priority as a text", entry(`"kind": "flagos", "priority": "100"`), []string{`priority: given "100", want a whole number`}},
		{"priority null", entry(`"kind": "flagos", "priority": null`), []string{`priority: given null, want a whole number`}},
		{"priority too large", entry(`"kind": "flagos", "priority": 1e300`), []string{`priority: given 1e300, want a whole number`}},
		{"available as a number", entry(`"kind": "flagos", "available": 1`), []string{":2:67: available: given 1, want true, false"}},
		{"available blank", entry(`"kind": "flagos", "available": ""`), []string{`available: given "", want true, false`}},
		{"available null", entry(`"kind": "flagos", "available": null`), []string{`available: given null, want true, false`}},
		{"available with a wrong reason", entry(`"kind": "flagos", "available": {"reason": 1}`), []string{`available: given {"reason":1}`}},
		{"unknown field", entry(`"kind": "flagos", "priorty": 1`), []string{`:2:54: unknown field "priorty"`, `did you mean "priority"?`}},
		{"field twice", entry(`"kind": "flagos", "kind": "vendor"`), []string{":2:54: kind: is given twice"}},
		{"impl twice", "[{\"op\": \"x\", \"impl_id\": \"a\", \"kind\": \"flagos\"},\n {\"op\": \"y\", \"impl_id\": \"a\", \"kind\": \"flagos\"},\n" +
			" {\"op\": \"x\", \"impl_id\": \"a\", \"kind\": \"vendor\", \"vendor\": \"ü\"}]", []string{`:3:25: impl_id: impl "a" of op "x" is listed twice, first at 1:25`}},
		{"columns count characters", `[{"op": "ü", "impl_id": 1, "kind": "flagos"}]`, []string{":1:25: impl_id: given 1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := writeCatalog(t, tt.give)
			got := commandtest.Run(t, "ops", "resolve", "gemm", "--catalog", file)
			assert.Equal(t, 1, got.Code)
			assert.Empty(t, got.Out)
			line := commandtest.OnlyError(t, got)
			assert.Contains(t, line, "catalog: "+file+":")
			r, got := resolveOp(t, "gemm", tt.give)
			assert.Equal(t, 1, got.Code)
			require.NotNil(t, r.Error, got.Out)
			assert.Equal(t, "catalog", r.Error.Code)
			assert.Contains(t, r.Error.Message, "catalog: standard input:")
			for _, part := range tt.want {
				assert.Contains(t, line, part)
				assert.Contains(t, r.Error.Message, part)
			}
		})
	}
}

func TestResolveMissingFile(t *testing.T) {
	got := commandtest.Run(t, "ops", "resolve", "gemm", "--catalog", "/nonexistent/impls.json")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, commandtest.OnlyError(t, got), "/nonexistent/impls.json: no such file")
}

func TestResolveUnknownOp(t *testing.T) {
	r, got := resolveOp(t, "gem", smallCatalog)
	assert.Equal(t, 1, got.Code)
	assert.Equal(t, "no_candidate", r.Error.Code)
	assert.Equal(t, `op "gem": the catalogue lists no impl of it; did you mean "gemm"?`, r.Error.Message)
	r, _ = resolveOp(t, "gem", "[]")
	assert.Equal(t, "no_candidate", r.Error.Code)
}
