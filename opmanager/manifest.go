package opmanager

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/primus-fl/primus/opregistry"
)

// ManifestVersion is the version of the format of a Manifest.
const ManifestVersion = 1

// Manifest records which impl serves each op, so that another run can be checked against it.
type Manifest struct {
	Version int `json:"version"`
	// Policy is the fingerprint of the policy, including its rules for layers and phases.
	Policy string `json:"policy_fingerprint"`
	// Ops are the decisions, sorted by op.
	Ops []ManifestOp `json:"ops"`
}

// ManifestOp is the decision for one op.
type ManifestOp struct {
	Op      string `json:"op"`
	Impl    string `json:"impl_id"` // "" if calls fail
	Source  string `json:"source,omitempty"`
	Version string `json:"version,omitempty"` // of the source, or of its library
	// Device is the type of device that the operands lie on, "" for the host. There is a decision
	// for each type on which an impl serves the op.
	Device string `json:"device,omitempty"`
	// Rules are the rules for layers and phases that apply, "" for none. There is one decision for
	// each set of rules in use.
	Rules string `json:"rules,omitempty"`
}

// Manifest returns the current decisions.
func (m *Manager) Manifest() Manifest {
	m.core.mu.Lock()
	policy := *m.root.policy
	tables := m.tablesLocked()
	m.core.mu.Unlock()

	sources := map[string]*opregistry.Source{}
	for _, s := range tables[0].registry.Sources() {
		sources[s.Name] = &s
	}
	manifest := Manifest{Version: ManifestVersion, Policy: policy.Fingerprint(), Ops: []ManifestOp{}}
	for _, t := range tables {
		for i, op := range t.registry.Ops() {
			o := ManifestOp{Op: op.Name(), Rules: t.history.rules}
			if head := t.rows[i].head; head != nil {
				o.Impl, o.Source, o.Version = head.info.ID, head.info.Source, sources[head.info.Source].CurrentVersion()
			}
			manifest.Ops = append(manifest.Ops, o)
			for _, d := range t.devices {
				if head := d.rows[i].head; head != nil {
					manifest.Ops = append(manifest.Ops, ManifestOp{
						Op: op.Name(), Device: d.on.String(), Rules: t.history.rules,
						Impl: head.info.ID, Source: head.info.Source, Version: sources[head.info.Source].CurrentVersion(),
					})
				}
			}
		}
	}
	slices.SortFunc(manifest.Ops, func(a, b ManifestOp) int {
		return cmp.Or(strings.Compare(a.Op, b.Op), strings.Compare(a.Device, b.Device), strings.Compare(a.Rules, b.Rules))
	})
	return manifest
}

// ParseManifest reads a Manifest from JSON.
func ParseManifest(data []byte) (Manifest, error) {
	var m Manifest
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&m); err != nil {
		return m, fmt.Errorf("manifest: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return m, errors.New("manifest: given text after the value, want one value")
	}
	if m.Version != ManifestVersion {
		return m, fmt.Errorf("manifest: given version %d, want %d; write it again with this release", m.Version, ManifestVersion)
	}
	return m, nil
}

// Check returns an error that joins every difference between the manifest and got, nil if there is
// none. It does not compare decisions under rules that are not in use in got, or for
// devices that no impl serves in one of the two.
func (m Manifest) Check(got Manifest) error {
	var faults []error
	if m.Policy != got.Policy {
		faults = append(faults, fmt.Errorf("manifest: policy fingerprint is %s, want %s: the policy file, the tuning file, the experiment, a TE_FL_ variable or a flag differs; primus policy show prints the policy", got.Policy, m.Policy))
	}
	type key struct{ op, device, rules string }
	have := map[key]ManifestOp{}
	for _, o := range got.Ops {
		have[key{o.Op, o.Device, o.Rules}] = o
	}
	wanted := map[key]struct{}{}
	for _, want := range m.Ops {
		k := key{want.Op, want.Device, want.Rules}
		wanted[k] = struct{}{}
		o, ok := have[k]
		switch {
		case !ok && (want.Rules != "" || want.Device != ""):
		case !ok:
			faults = append(faults, fmt.Errorf("manifest: op %q is missing, want it served by %s", want.Op, orNone(want.Impl)))
		case o.Impl != want.Impl:
			faults = append(faults, fmt.Errorf("manifest: op %q is served by %s, want %s%s%s", o.Op, orNone(o.Impl), orNone(want.Impl), onDevice(o.Device), underRules(o.Rules)))
		case o.Version != want.Version:
			faults = append(faults, fmt.Errorf("manifest: op %q is served by %s of %s %s, want version %s", o.Op, o.Impl, o.Source, orNone(o.Version), orNone(want.Version)))
		}
	}
	for _, o := range got.Ops {
		if _, ok := wanted[key{o.Op, o.Device, o.Rules}]; !ok && o.Device == "" && o.Rules == "" && o.Impl != "" {
			faults = append(faults, fmt.Errorf("manifest: op %q is served by %s, want no such op", o.Op, o.Impl))
		}
	}
	return errors.Join(faults...)
}

func orNone(name string) string {
	if name == "" {
		return "none"
	}
	return name
}

// onDevice returns a clause that names a type of device, "" for the host.
func onDevice(name string) string {
	if name == "" {
		return ""
	}
	return " on " + name
}

// underRules returns a clause that names rules, "" for none.
func underRules(rules string) string {
	if rules == "" {
		return ""
	}
	return ", under " + rules
}
