package serve

import (
	"fmt"
	"sync"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opmanager/policyfile"
)

// Source is the origin that policies name for values that the service was given.
const Source = "service"

// ConflictError reports a change of a policy that is not the one in force any more.
type ConflictError struct {
	Expected uint64 // the generation that the change was meant for
	Since    uint64 // the generation that began with the policy in force
	Current  uint64
}

// Error names the expected generation and the present one.
func (e *ConflictError) Error() string {
	if e.Expected > e.Current {
		return fmt.Sprintf("policy: given expected_generation %d, but the dispatch table is of generation %d; read the policy again", e.Expected, e.Current)
	}
	return fmt.Sprintf("policy: given expected_generation %d, but the policy was changed in generation %d; read it again and look at what is different", e.Expected, e.Since)
}

// Control changes the policy of a manager that is in use. All changes of the policy go through it,
// so that none overwrites another unnoticed.
type Control struct {
	manager *opmanager.Manager

	mu       sync.Mutex
	base     oppolicy.Policy     // of every source but the service
	overlay  *policyfile.Overlay // of the service; nil for none
	document string              // that overlay came from
	since    uint64              // the generation that began with the policy in force
}

// NewControl returns a Control of a manager whose policy comes from all sources but the service.
func NewControl(m *opmanager.Manager) *Control {
	return &Control{manager: m, base: m.Policy(), since: m.Generation()}
}

// SetBase replaces the policy of all sources but the service; the document of the service stays on
// top of it. SetBase returns the generation that begins with the new policy. When it returns an
// error, which is an *opmanager.UnservedError, nothing has changed.
func (c *Control) SetBase(base oppolicy.Policy) (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.put(base, c.overlay); err != nil {
		return 0, err
	}
	c.base = base
	return c.since, nil
}

// State is the policy in force.
type State struct {
	Generation  uint64        `json:"generation" doc:"number of the dispatch table; give it as expected_generation of a change"`
	Since       uint64        `json:"since" doc:"generation that began with this policy"`
	Fingerprint string        `json:"fingerprint" doc:"equal for policies that mean the same"`
	Policy      oppolicy.View `json:"policy"`
	Document    string        `json:"document" doc:"what this service was given, on top of all other sources; empty for nothing"`
	Warnings    []string      `json:"warnings" doc:"names in the policy that no loaded source registers"`
}

// State returns the policy in force.
func (c *Control) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.manager.Policy()
	return State{
		Generation: c.manager.Generation(), Since: c.since, Fingerprint: p.Fingerprint(), Policy: p.View(),
		Document: c.document, Warnings: append([]string{}, c.manager.Warnings()...),
	}
}

// Proposal is what a document would change.
type Proposal struct {
	Generation  uint64             `json:"generation" doc:"number of the dispatch table that the proposal was compared with"`
	Fingerprint string             `json:"fingerprint" doc:"of the policy that would be in force"`
	Policy      oppolicy.View      `json:"policy" doc:"the policy that would be in force"`
	Changes     []opmanager.Change `json:"changes" doc:"ops that would be served by another impl"`
	Warnings    []string           `json:"warnings" doc:"names in the proposed policy that no loaded source registers"`
	Refused     string             `json:"refused,omitempty" doc:"why the policy would be refused: it leaves an op that is in use without an impl"`
}

// Propose returns what a document would change, without changing anything. The error joins the
// faults of the document.
func (c *Control) Propose(document string) (Proposal, error) {
	overlay, err := parse(document)
	if err != nil {
		return Proposal{}, err
	}
	c.mu.Lock()
	base, generation := c.base, c.manager.Generation()
	c.mu.Unlock()
	return c.proposal(base, generation, overlay), nil // without the lock, because it may take long
}

// Apply replaces the document of the service, if the policy has not changed since the expected
// generation. The error is a *ConflictError, an *opmanager.UnservedError or joins the faults of the
// document. When there is an error, nothing has changed.
func (c *Control) Apply(document string, expected uint64) (Proposal, error) {
	return c.change(expected, document, func() (*policyfile.Overlay, error) { return parse(document) })
}

// Withdraw removes the document of the service, under the same condition as Apply.
func (c *Control) Withdraw(expected uint64) (Proposal, error) {
	return c.change(expected, "", func() (*policyfile.Overlay, error) { return nil, nil })
}

func (c *Control) change(expected uint64, document string, read func() (*policyfile.Overlay, error)) (Proposal, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if current := c.manager.Generation(); expected < c.since || expected > current {
		return Proposal{}, &ConflictError{Expected: expected, Since: c.since, Current: current}
	}
	overlay, err := read()
	if err != nil {
		return Proposal{}, err
	}
	p := c.proposal(c.base, c.manager.Generation(), overlay)
	if err := c.put(c.base, overlay); err != nil {
		return Proposal{}, err
	}
	c.overlay, c.document = overlay, document
	p.Generation, p.Refused = c.since, ""
	return p, nil
}

func parse(document string) (*policyfile.Overlay, error) {
	return policyfile.Parse(Source, []byte(document))
}

func (c *Control) proposal(base oppolicy.Policy, generation uint64, overlay *policyfile.Overlay) Proposal {
	p := overlay.Apply(base)
	changes, warnings := c.manager.Preview(p)
	proposal := Proposal{
		Generation: generation, Fingerprint: p.Fingerprint(), Policy: p.View(),
		Changes: changes, Warnings: append([]string{}, warnings...),
	}
	if err := c.manager.CheckPolicy(p); err != nil {
		proposal.Refused = err.Error()
	}
	return proposal
}

// put makes a policy with a document on top of it the policy of the manager.
func (c *Control) put(base oppolicy.Policy, overlay *policyfile.Overlay) error {
	generation, err := c.manager.SetPolicy(overlay.Apply(base))
	if err == nil {
		c.since = generation
	}
	return err
}
