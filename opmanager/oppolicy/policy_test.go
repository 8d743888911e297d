package oppolicy_test

import (
	"log/slog"
	"testing"

	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
)

func fromEnvironment(env map[string]string) (oppolicy.Policy, error) {
	return oppolicy.FromEnvironment(func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	})
}

// B15: a wrong value is an error that names it.
func TestPolicyErrors(t *testing.T) {
	tests := []struct{ name, value, want string }{
		{"TE_FL_PREFER", "vendro", `policy: environment TE_FL_PREFER="vendro": at 1: unknown kind "vendro", want flagos, vendor, reference or tuned; did you mean "vendor"?`},
		{"TE_FL_PREFER", " default", `at 2: unknown kind "default"`},
		{"TE_FL_PREFER_VENDOR", "2", `TE_FL_PREFER_VENDOR="2": at 1: "2" is not a switch, want 1, true, yes or on, or 0, false, no or off`},
		{"TE_FL_STRICT", "-1", `"-1" is not a switch`},
		{"TE_FL_SKIP_CUDA", "maybe", `TE_FL_SKIP_CUDA="maybe"`},
		{"TE_FL_ALLOW_VENDORS", ",", `no vendor between the commas`},
		{"TE_FL_ALLOW_VENDORS", "acme,nvidia amd", `at 6: vendor "nvidia amd" contains a space; separate names with commas`},
		{"TE_FL_DENY_VENDORS", "a;b", `vendor "a;b" contains ';'`},
		{"TE_FL_DENY_VENDORS", "reference", `"reference" is a kind of impl, not a vendor`},
		{"TE_FL_DENY_VENDORS", "vendor.acme", `give the name alone, such as acme`},
		{"TE_FL_PER_OP", "a=flagos;b", `at 10: entry "b" has no =`},
		{"TE_FL_PER_OP", "a=flagos; a=vendor", `at 11: op "a" is given twice, first at 1`},
		{"TE_FL_PER_OP", "a=flagos|vendor,reference", `at 10: op "a": unknown token "vendor,reference": want flagos, vendor, vendor:NAME, reference, tuned or impl:ID; separate tokens with |`},
		{"TE_FL_PER_OP", "a=reference.go", `did you mean "impl:reference.go"?`},
		{"TE_FL_PER_OP", "a=cuda", `did you mean "vendor:cuda"?`},
		{"TE_FL_PER_OP", "a=flagso", `did you mean "flagos"?`},
		{"TE_FL_PER_OP", "a=vendor:", `the vendor's name is missing`},
		{"TE_FL_PER_OP", "a=impl:", `want impl:ID with the id of one impl`},
		{"TE_FL_PER_OP", "=flagos", `"" is not the name of an op`},
		{"TE_FL_PER_OP", "a=", `op "a" has no token`},
	}
	for _, tt := range tests {
		t.Run(tt.name+"="+tt.value, func(t *testing.T) {
			_, err := fromEnvironment(map[string]string{tt.name: tt.value})
			var policyErr *oppolicy.Error
			require.ErrorAs(t, err, &policyErr)
			assert.ErrorContains(t, err, tt.want)
			assert.ErrorContains(t, err, tt.name)
		})
	}
}

func TestPolicyErrorsAreReportedTogether(t *testing.T) {
	_, err := fromEnvironment(map[string]string{"TE_FL_PREFER": "x", "TE_FL_STRICT": "x", "TE_FL_PER_OP": "x"})
	for _, name := range []string{"TE_FL_PREFER", "TE_FL_STRICT", "TE_FL_PER_OP"} {
		assert.ErrorContains(t, err, name)
	}
}

func TestPolicyFromEnvironment(t *testing.T) {
	p, err := fromEnvironment(map[string]string{
		"TE_FL_PREFER": " Vendor ", "TE_FL_PREFER_VENDOR": "0", "TE_FL_STRICT": "YES", "TE_FL_SKIP_CUDA": "on",
		"TE_FL_ALLOW_VENDORS": " Acme ,, nvidia", "TE_FL_DENY_VENDORS": "amd",
		"TE_FL_PER_OP": "rmsnorm_fwd = vendor:Acme | default ; *_bwd=impl:reference.go",
	})
	require.NoError(t, err)
	assert.Equal(t, opregistry.KindVendor, p.Prefer)
	assert.True(t, p.Strict)
	assert.Equal(t, []string{"acme", "nvidia"}, p.Allow)
	assert.Equal(t, []string{"amd"}, p.Deny)
	assert.True(t, p.SkipCUDA)
	order, source := p.Order("rmsnorm_fwd")
	assert.Equal(t, []oppolicy.Token{{Kind: opregistry.KindVendor, Vendor: "acme"}, {Kind: opregistry.KindFlagos}}, order)
	assert.Equal(t, "environment TE_FL_PER_OP at 1", source)
	order, _ = p.Order("rmsnorm_bwd")
	assert.Equal(t, []oppolicy.Token{{Impl: "reference.go"}}, order)
	assert.Equal(t, "environment TE_FL_PREFER", p.Sources[oppolicy.FieldPrefer])
}

// W8: rules may be for patterns.
func TestPatterns(t *testing.T) {
	p := oppolicy.Default()
	require.NoError(t, p.SetPerOp("*=flagos;*_bwd=reference;multi_*_bwd=vendor;multi_x_bwd=vendor:acme", "test"))
	tests := map[string]string{
		"gemm": "flagos", "rmsnorm_bwd": "reference", "multi_y_bwd": "vendor", "multi_x_bwd": "vendor:acme", "multi_bwd": "reference",
	}
	for op, want := range tests {
		order, _ := p.Order(op)
		require.Len(t, order, 1, op)
		assert.Equal(t, want, order[0].String(), op)
	}
}

// B5: an empty allow list of the API allows no vendor.
func TestB5EmptyAllowListAllowsNone(t *testing.T) {
	p := oppolicy.Default()
	p.Allow = []string{}
	order, rejected := p.Select("op", []oppolicy.Candidate{
		{ID: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "acme"},
		{ID: "reference.go", Kind: opregistry.KindReference},
	}, opregistry.NormalVendor)
	assert.Equal(t, []int{1}, order)
	assert.Len(t, rejected, 1)
}

// B6: names of vendors are compared without case and by alias.
func TestB6VendorNames(t *testing.T) {
	reg := opregistry.NewRegistry()
	impls := []oppolicy.Candidate{
		{ID: "vendor.cuda", Kind: opregistry.KindVendor, Vendor: "CUDA"},
		{ID: "vendor.hip", Kind: opregistry.KindVendor, Vendor: "HIP"},
		{ID: "vendor.npu", Kind: opregistry.KindVendor, Vendor: "NPU"},
	}
	for i, name := range []string{"Nvidia", "amd", "ascend"} {
		p := oppolicy.Default()
		require.NoError(t, p.SetAllow(name, "test"))
		order, _ := p.Select("op", impls, reg.Snapshot().Vendor)
		assert.Equal(t, []int{i}, order, name)
	}
}

// B18: allow and deny apply to every impl that carries a vendor's name.
func TestB18FiltersApplyToEveryKind(t *testing.T) {
	p := oppolicy.Default()
	require.NoError(t, p.SetDeny("acme", "test"))
	order, rejected := p.Select("op", []oppolicy.Candidate{{ID: "default.acme", Kind: opregistry.KindFlagos, Vendor: "acme"}}, opregistry.NormalVendor)
	assert.Empty(t, order)
	assert.Equal(t, []oppolicy.Rejection{{ID: "default.acme", Reason: "vendor acme is denied by test"}}, rejected)
}

// B24: skipping CUDA leaves out one vendor, and says so.
func TestB24SkipCUDA(t *testing.T) {
	p, err := fromEnvironment(map[string]string{"TE_FL_SKIP_CUDA": "true"})
	require.NoError(t, err)
	order, rejected := p.Select("op", []oppolicy.Candidate{
		{ID: "vendor.cuda", Kind: opregistry.KindVendor, Vendor: "CUDA"},
		{ID: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "acme"},
	}, opregistry.NewRegistry().Snapshot().Vendor)
	assert.Equal(t, []int{1}, order)
	assert.Equal(t, []oppolicy.Rejection{{ID: "vendor.cuda", Reason: "vendor CUDA is left out by environment TE_FL_SKIP_CUDA"}}, rejected)
}

// B15: a level in any spelling is read, and a wrong one named.
func TestParseLogLevel(t *testing.T) {
	tests := map[string]slog.Level{"": slog.LevelInfo, " debug ": slog.LevelDebug, "Warning": slog.LevelWarn, "ERROR": slog.LevelError}
	for give, want := range tests {
		got, err := oppolicy.ParseLogLevel(give)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err := oppolicy.ParseLogLevel("DEBGU")
	assert.ErrorContains(t, err, `environment TEFL_LOG_LEVEL="DEBGU": at 1: unknown level "DEBGU", want DEBUG, INFO, WARNING or ERROR; did you mean "DEBUG"?`)
}

func TestParseLogFormat(t *testing.T) {
	for give, want := range map[string]oppolicy.LogFormat{"": oppolicy.LogPlain, " Plain": oppolicy.LogPlain, "UPSTREAM ": oppolicy.LogUpstream, "text": oppolicy.LogPlain, "JSON": oppolicy.LogJSON} {
		got, err := oppolicy.ParseLogFormat(give)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err := oppolicy.ParseLogFormat(" upstrem")
	assert.EqualError(t, err, `policy: environment TEFL_LOG_FORMAT=" upstrem": at 2: unknown format "upstrem", want plain, upstream or json; did you mean "upstream"?`)
}

func TestTokensRoundTrip(t *testing.T) {
	for _, text := range []string{"flagos", "vendor", "reference", "vendor:acme", "vendor:*", "impl:vendor.acme"} {
		token, err := oppolicy.ParseToken(text)
		require.NoError(t, err)
		assert.Equal(t, text, token.String())
	}
}

// vendor:* stands for every vendor, as vendor does.
func TestEveryVendorByStar(t *testing.T) {
	impls := []oppolicy.Candidate{
		{ID: "default.flagos", Kind: opregistry.KindFlagos}, {ID: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "acme", Priority: 1},
		{ID: "vendor.zeta", Kind: opregistry.KindVendor, Vendor: "zeta", Priority: 2},
	}
	for _, order := range []string{"op=vendor:*|flagos", "op=vendor|flagos"} {
		p, err := fromEnvironment(map[string]string{"TE_FL_PER_OP": order})
		require.NoError(t, err)
		got, rejected := p.Select("op", impls, opregistry.NormalVendor)
		assert.Equal(t, []int{2, 1, 0}, got, order)
		assert.Empty(t, rejected)
	}
	p, err := fromEnvironment(map[string]string{"TE_FL_PER_OP": "op=vendor:*", "TE_FL_DENY_VENDORS": "zeta"})
	require.NoError(t, err)
	got, rejected := p.Select("op", impls, opregistry.NormalVendor)
	assert.Equal(t, []int{1}, got)
	assert.Len(t, rejected, 2)
}

func FuzzPolicy(f *testing.F) {
	f.Add("op=vendor:acme|flagos;*_bwd=reference", "a,b", "vendor")
	f.Add("op==|;", ", ,", "\x00")
	f.Fuzz(func(t *testing.T, perOp, vendors, prefer string) {
		defer primustest.Measured(t, len(perOp)+len(vendors)+len(prefer))()
		p, err := fromEnvironment(map[string]string{"TE_FL_PER_OP": perOp, "TE_FL_ALLOW_VENDORS": vendors, "TE_FL_PREFER": prefer, "TE_FL_STRICT": prefer})
		for _, e := range joined(err) {
			var policyErr *oppolicy.Error
			require.ErrorAs(t, e, &policyErr)
			assert.LessOrEqual(t, policyErr.Offset, len(policyErr.Value))
			assert.GreaterOrEqual(t, policyErr.Offset, 0)
		}
		impls := []oppolicy.Candidate{{ID: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "acme"}, {ID: "default.flagos", Kind: opregistry.KindFlagos}}
		order, rejected := p.Select("op", impls, opregistry.NormalVendor)
		assert.Equal(t, len(impls), len(order)+len(rejected))
	})
}

func joined(err error) []error {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return all.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

func TestTuningWarnings(t *testing.T) {
	t.Parallel()
	known := oppolicy.Names{Impls: []string{"vendor.acme"}, Missing: "which nobody has"}
	warnings := func(tuning *oppolicy.Tuning, environment map[string]string) []string {
		p, err := fromEnvironment(environment)
		require.NoError(t, err)
		if tuning != nil {
			p.UseTuning(tuning)
		}
		return p.Warnings(known, opregistry.NormalVendor)
	}
	tuning := &oppolicy.Tuning{Source: "tuning file t.json", Ops: map[string]oppolicy.TunedOp{"op": {Impl: "vendor.acme", Calls: []oppolicy.TunedCall{{Impl: "vendor.acm"}}}}}
	gone := `policy: tuning file t.json names impl "vendor.acm", which nobody has; did you mean "vendor.acme"?`
	assert.Equal(t, []string{gone}, warnings(tuning, nil))
	assert.Equal(t, []string{gone}, warnings(tuning, map[string]string{"TE_FL_PREFER": "tuned"}))
	assert.Equal(t, []string{"policy: tuning file t.json has no effect, because environment TE_FL_PREFER prefers vendor: prefer tuned instead, or leave that out", gone},
		warnings(tuning, map[string]string{"TE_FL_PREFER": "vendor"}))
	assert.Equal(t, []string{"policy: environment TE_FL_PREFER asks for tuned impls, but there is no tuning file: make one with primus ops tune and give it with --tune FILE"},
		warnings(nil, map[string]string{"TE_FL_PREFER": "tuned"}))
}

func TestPolicyWarnings(t *testing.T) {
	p, err := fromEnvironment(map[string]string{
		"TE_FL_DENY_VENDORS": "*", "TE_FL_ALLOW_VENDORS": "cuda,acmee",
		"TE_FL_PER_OP": "op=impl:vendor.acm|vendor:zeta; rms_*=flagos; o*=reference; nvshmem_*=vendor; get_cublaslt_version=vendor",
	})
	require.NoError(t, err)
	known := oppolicy.Names{Ops: []string{"op"}, Vendors: []string{"acme", "nvidia"}, Impls: []string{"vendor.acme"}, Missing: "which nobody has"}
	assert.Equal(t, []string{
		`policy: environment TE_FL_ALLOW_VENDORS names vendor "acmee", which nobody has; did you mean "acme"?`,
		`policy: environment TE_FL_PER_OP at 1 names impl "vendor.acm", which nobody has; did you mean "vendor.acme"?`,
		`policy: environment TE_FL_PER_OP at 1 names vendor "zeta", which nobody has`,
		`policy: environment TE_FL_PER_OP at 33 names op "rms_*", which nobody has`,
		`policy: environment TE_FL_PER_OP at 61 names op "nvshmem_*", which is not dispatched here: primus ops explain nvshmem_finalize`,
		`policy: environment TE_FL_PER_OP at 79 names op "get_cublaslt_version", which is not dispatched here: primus ops explain get_cublasLt_version`,
	}, p.Warnings(known, opregistry.NewRegistry().Snapshot().Vendor))

	p = oppolicy.Default()
	require.NoError(t, p.SetDeny("*", "test"))
	assert.Empty(t, p.Warnings(oppolicy.Names{}, opregistry.NormalVendor), "every vendor is right even where there is none")
}

func assertOrderFromProgram(t *testing.T, p oppolicy.Policy) {
	t.Helper()
	_, source := p.Order("other")
	assert.Equal(t, "the program", source)
}

// The source of a value that the program sets is the program, not the default.
func TestSourceOfWhatAProgramSets(t *testing.T) {
	p := oppolicy.Default()
	assert.Equal(t, "default", p.View().Sources["prefer"])
	p.Prefer, p.Strict, p.SkipCUDA, p.ProtectInPlace, p.Deterministic = opregistry.KindVendor, true, true, true, true
	p.Allow, p.Deny, p.PerOp, p.Rules = []string{"a"}, []string{"b"}, []oppolicy.OpRule{{Pattern: "op"}}, []oppolicy.Rule{{}}
	p.Canary = []oppolicy.Canary{{Op: "op", Fraction: 0.1}}
	p.Quarantine.Failures, p.Verify.Fraction, p.CrossDevice = 1, 1, oppolicy.CrossDeviceError
	for field, source := range p.View().Sources {
		assert.Equal(t, "the program", source, field)
	}
	assertOrderFromProgram(t, p)
	environment, err := fromEnvironment(map[string]string{oppolicy.EnvPrefer: "flagos"})
	require.NoError(t, err)
	p = environment.Over(p)
	assert.Equal(t, "environment TE_FL_PREFER", p.View().Sources["prefer"])

	before := p
	p.Prefer = opregistry.KindReference
	assert.Equal(t, "the program", p.View().Sources["prefer"], "the program has the last word")
	assertOrderFromProgram(t, p)
	assert.Equal(t, "environment TE_FL_PREFER", before.View().Sources["prefer"])
	require.NoError(t, p.SetDeny("c", "flag --deny-vendors"))
	assert.Equal(t, "flag --deny-vendors", p.View().Sources["deny_vendors"])
	p.Deny = append(p.Deny, "d")
	assert.Equal(t, "the program", p.View().Sources["deny_vendors"])
}

func TestCanaryFromEnvironment(t *testing.T) {
	p, err := fromEnvironment(map[string]string{oppolicy.EnvCanary: " rmsnorm_fwd = vendor:Acme @ 0.05; generic_gemm=impl:vendor.x@5e-1;"})
	require.NoError(t, err)
	assert.Equal(t, "rmsnorm_fwd=vendor:acme@0.05", p.Canary[0].String())
	assert.Equal(t, "generic_gemm=impl:vendor.x@0.5", p.Canary[1].String())
	assert.Equal(t, "environment TE_FL_CANARY at 36", p.View().Sources["canary.generic_gemm"])
	assert.Equal(t, oppolicy.DefaultCanaryCalls, p.View().Canary[0].Calls)
	for value, want := range map[string]string{
		"rmsnorm_fwd=vendor:acme":       `at 1: given "rmsnorm_fwd=vendor:acme", want op=vendor:NAME@FRACTION`,
		"vendor:acme@0.1":               "want op=vendor:NAME@FRACTION",
		"*_fwd=vendor:acme@0.1":         `"*_fwd" is not the name of an op; a canary is for one op`,
		"a=vendor:x@0.1;a=vendor:y@0.1": `at 16: op "a" is given twice`,
		"a=flagos@0.1":                  `at 3: op "a": given "flagos", want one impl: vendor:NAME or impl:ID`,
		"a=vendor:*@0.1":                `want one impl`,
		"a=vendor:x@-0.1":               `at 12: op "a": given "-0.1" as the share of the calls, want a number above 0 and at most 0.5`,
		"a=vendor:x@0":                  "want a number above 0",
		"a=vendor:x@1.5":                "want a number above 0",
		"a=vendor:x@NaN":                "want a number above 0",
		"a=vendor:x@":                   `given "" as the share`,
		"a=vendor:x@0.1@2":              `given "0.1@2" as the share`,
	} {
		_, err := fromEnvironment(map[string]string{oppolicy.EnvCanary: value})
		assert.ErrorContains(t, err, want, value)
	}
}
