package serve_test

import (
	"fmt"
	"net/http"
	goruntime "runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/serve"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/ops/norm"
)

func (b *bench) selected(op string) string {
	b.t.Helper()
	e, err := b.manager.Explain(op)
	require.NoError(b.t, err)
	return e.Selected
}

func (b *bench) apply(generation uint64, text string) reply {
	b.t.Helper()
	return b.ask(http.MethodPut, fmt.Sprintf("/v1/policy?expected_generation=%d", generation), text, bearer, asYAML)
}

const referenceFirst = "prefer: reference\ndeny_vendors: [acne]\n"

func TestPolicyIsProposedAppliedAndWithdrawn(t *testing.T) {
	b := newBench(t, nil)
	before := read[serve.State](b, "/v1/policy")
	assert.Empty(t, before.Document)

	got := b.ask(http.MethodPost, "/v1/policy/proposal", referenceFirst, asYAML)
	require.Equal(t, http.StatusOK, got.status, got.body)
	proposal := decode[serve.Proposal](t, got.body)
	assert.Equal(t, "reference", proposal.Policy.Prefer.String())
	assert.Equal(t, "service:1", proposal.Policy.Sources["prefer"])
	require.Len(t, proposal.Warnings, 1)
	assert.Contains(t, proposal.Warnings[0], `did you mean "acme"?`)
	changes := map[string]opmanager.Change{}
	for _, c := range proposal.Changes {
		changes[c.Op] = c
	}
	assert.Equal(t, "default.flagos reference.go", changes["residual_add"].From+" "+changes["residual_add"].To)
	assert.Contains(t, changes["residual_add"].Reason, "later in the order reference")
	assert.Equal(t, before, read[serve.State](b, "/v1/policy"), "a proposal changes nothing")

	got = b.apply(before.Generation, referenceFirst)
	require.Equal(t, http.StatusOK, got.status, got.body)
	applied := decode[serve.Proposal](t, got.body)
	assert.Equal(t, proposal.Changes, applied.Changes, "what was proposed is what has changed")
	assert.Equal(t, "reference.go", b.selected("residual_add"))
	after := read[serve.State](b, "/v1/policy")
	assert.Equal(t, referenceFirst, after.Document)
	assert.Equal(t, proposal.Fingerprint, after.Fingerprint)
	assert.Equal(t, applied.Generation, after.Since)
	assert.Empty(t, before.Layers, "what has its default is in no layer")
	assert.Equal(t, []serve.Layer{{Layer: "service", Origin: "service", Sources: map[string]string{"prefer": "service:1", "deny_vendors": "service:2"}}}, after.Layers)
	assert.Regexp(t, `msg="apply policy" by=alice from=127\.0\.0\.1:\d+ generation=\d+ ops_changed=\d+ document="prefer: reference`, b.log.String())

	stale := b.apply(before.Generation, "strict: true\n")
	require.Equal(t, http.StatusConflict, stale.status)
	assert.Contains(t, stale.problem(t).Detail, fmt.Sprintf("changed in generation %d", after.Since))
	invalid := b.apply(after.Generation, "prefer: vendro\nwhat: 1\n")
	require.Equal(t, http.StatusUnprocessableEntity, invalid.status)
	assert.Len(t, invalid.problem(t).Errors, 2)
	assert.Equal(t, "body:1:9", invalid.problem(t).Errors[0].Location)
	assert.Equal(t, after, read[serve.State](b, "/v1/policy"), "what was refused has changed nothing")
	assert.Regexp(t, fmt.Sprintf(`msg="apply policy: refused" by=alice from=\S+ expected_generation=%d document="strict: true\\n" reason="policy: given expected_generation`, before.Generation), b.log.String())
	assert.Regexp(t, fmt.Sprintf(`msg="apply policy: refused" by=alice from=\S+ expected_generation=%d document="prefer: vendro\\nwhat: 1\\n" reason="policy: service:1:9`, after.Generation), b.log.String())

	got = b.ask(http.MethodDelete, fmt.Sprintf("/v1/policy?expected_generation=%d", after.Generation), "", bearer)
	require.Equal(t, http.StatusOK, got.status, got.body)
	assert.Equal(t, "default.flagos", b.selected("residual_add"))
	assert.Equal(t, before.Fingerprint, read[serve.State](b, "/v1/policy").Fingerprint)
}

// Nothing that takes the last impl from an op that is in use comes into force, from the service or
// from below it.
func TestPolicyThatLeavesAnOpWithoutImplIsRefused(t *testing.T) {
	b := newBench(t, nil)
	add := opmanager.MustBind(b.manager, norm.ResidualAdd)
	b.acme = func() error { return nil }
	before := read[serve.State](b, "/v1/policy")
	const dead = "per_op: {residual_add: vendor:nvidia, generic_gemm: vendor:nvidia}\n"

	got := b.ask(http.MethodPost, "/v1/policy/proposal", dead, asYAML)
	require.Equal(t, http.StatusOK, got.status, got.body)
	assert.Contains(t, decode[serve.Proposal](t, got.body).Refused, `op "residual_add" is in use, served by default.flagos`)

	got = b.apply(before.Generation, dead)
	require.Equal(t, http.StatusUnprocessableEntity, got.status, got.body)
	require.Len(t, got.problem(t).Errors, 1, "nobody has bound generic_gemm")
	assert.Equal(t, "op.residual_add", got.problem(t).Errors[0].Location)
	assert.Contains(t, got.problem(t).Errors[0].Message, `impl "default.flagos": not in the per-op order vendor:nvidia (service:1)`)
	assert.Equal(t, before, read[serve.State](b, "/v1/policy"))

	_, err := b.setLayer(opmanager.LayerService, "per_op: {residual_add: vendor:acme}")
	require.NoError(t, err)
	_, err = b.setLayer(opmanager.LayerFleet, "deny_vendors: acme")
	require.ErrorContains(t, err, `impl "vendor.acme": vendor acme is denied`)
	_, err = b.setLayer(opmanager.LayerService, "strict: true")
	require.NoError(t, err, "the refused policy below is forgotten")
	assert.Empty(t, b.manager.Policy().Deny)

	goruntime.KeepAlive(add)
}

// The layer of the service stays on top when a layer below it changes, and a change below is a
// change of the policy.
func TestServiceIsAboveOtherLayers(t *testing.T) {
	b := newBench(t, nil)
	_, err := b.setLayer(opmanager.LayerService, "prefer: reference")
	require.NoError(t, err)
	read := b.manager.Generation()
	generation, err := b.setLayer(opmanager.LayerFile, "prefer: vendor\nstrict: true")
	require.NoError(t, err)
	assert.Equal(t, "reference.go", b.selected("residual_add"))
	assert.True(t, b.manager.Policy().Strict)
	stale := b.apply(read, "{}")
	assert.Equal(t, http.StatusConflict, stale.status)
	assert.Contains(t, stale.problem(t).Detail, fmt.Sprintf("changed in generation %d", generation))
	withdrawn := b.ask(http.MethodDelete, fmt.Sprintf("/v1/policy?expected_generation=%d", generation), "", bearer)
	require.Equal(t, http.StatusOK, withdrawn.status, withdrawn.body)
	assert.Equal(t, "vendor.acme", b.selected("residual_add"))
}

// A quarantine makes a new table, but takes nothing away from what was read of the policy.
func TestQuarantine(t *testing.T) {
	b := newBench(t, nil)
	_, err := b.setLayer(opmanager.LayerService, "prefer: vendor")
	require.NoError(t, err)
	generation := read[serve.State](b, "/v1/policy").Generation
	for range 3 {
		require.NoError(t, b.add())
	}
	list := read[[]opmanager.Quarantine](b, "/v1/quarantine")
	require.Len(t, list, 1)
	assert.Equal(t, "vendor.acme", list[0].Impl)
	assert.Contains(t, list[0].Cause, "device lost")
	set := read[[]serve.Impl](b, "/v1/impls?state=quarantined")
	require.Len(t, set, 1)
	assert.Contains(t, set[0].Reason, "quarantined until")
	assert.Equal(t, uint64(3), set[0].Errors)

	got := b.ask(http.MethodDelete, "/v1/quarantine?op=residual_add&impl_id=vendor.acme", "", bearer)
	assert.Equal(t, `{"cleared":1}`+"\n", got.body)
	assert.Empty(t, b.manager.Quarantines())
	assert.Contains(t, b.log.String(), `msg="clear quarantine" by=alice`)
	assert.Equal(t, http.StatusOK, b.apply(generation, "strict: false").status)
}

// Of several who change the policy that they have read, one wins.
func TestOneChangeWins(t *testing.T) {
	b := newBench(t, nil)
	generation := b.manager.Generation()
	var won sync.Map
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if b.apply(generation, fmt.Sprintf("per_op: {swiglu%d: flagos}", i)).status == http.StatusOK {
				won.Store(i, true)
			}
		})
	}
	all.Wait()
	n := 0
	won.Range(func(any, any) bool { n++; return true })
	assert.Equal(t, 1, n)
}
