package policyfile

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/opmanager/oppolicy"
)

// Overlay holds the values that one document gives for a policy.
type Overlay struct {
	// values and plugins hold the given values, whose keys are in the Sources of values.
	values  oppolicy.Policy
	plugins Plugins

	file    string
	content fingerprint
}

// fingerprint identifies the content of a file.
type fingerprint [sha256.Size]byte

// Read reads and parses a policy file.
func Read(file string) (*Overlay, error) {
	data, err := readFile(file)
	if err != nil {
		return nil, err
	}
	return Parse(file, data)
}

// readFile returns the content of a regular file.
func readFile(file string) ([]byte, error) {
	data, err := document.ReadFile(file)
	if fault, ok := errors.AsType[*document.Error](err); ok {
		return nil, fmt.Errorf("policy: %w", fault)
	}
	if err != nil {
		return nil, readError(file, err)
	}
	return data, nil
}

// readError says which file was looked for, with its directory if the name is relative.
func readError(file string, err error) error {
	tried := ""
	if path, absErr := filepath.Abs(file); absErr == nil && path != file {
		tried = fmt.Sprintf(" (tried %s)", path)
	}
	return fmt.Errorf("policy: read policy file: %w%s; expected a YAML file, whose format `primus policy schema` prints", err, tried)
}

// Apply returns the policy with the values of the overlay in place of its own.
// A nil overlay changes nothing. A key is one value: orders of per_op, rules and
// the settings of quarantine and verify are replaced all together.
func (o *Overlay) Apply(p oppolicy.Policy) oppolicy.Policy {
	if o == nil {
		return p
	}
	for field, source := range o.values.Sources {
		switch field {
		case oppolicy.FieldPrefer:
			p.Prefer, p.PreferTuned = o.values.Prefer, o.values.PreferTuned
		case oppolicy.FieldStrict:
			p.Strict = o.values.Strict
		case oppolicy.FieldAllow:
			p.Allow = o.values.Allow
		case oppolicy.FieldDeny:
			p.Deny = o.values.Deny
		case oppolicy.FieldDeterministic:
			p.Deterministic = o.values.Deterministic
		case oppolicy.FieldPerOp:
			p.PerOp = o.values.PerOp
		case oppolicy.FieldProtect:
			p.ProtectInPlace = o.values.ProtectInPlace
		case oppolicy.FieldCrossDevice:
			p.CrossDevice = o.values.CrossDevice
		case oppolicy.FieldRules:
			p.Rules = o.values.Rules
		case oppolicy.FieldQuarantine:
			p.Quarantine = o.values.Quarantine
		case oppolicy.FieldVerify:
			p.Verify = o.values.Verify
		}
		p.SetSource(field, source)
	}
	return p
}
