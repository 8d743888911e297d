package opregistry

import (
	"fmt"
	"strings"
)

// Kind classifies an impl: the portable default, a vendor's, or the reference.
type Kind uint8

// The kinds. The zero Kind is unspecified and is refused at registration.
const (
	KindUnspecified Kind = iota
	KindFlagos           // the portable, fast default
	KindVendor           // a library or chip of a vendor
	KindReference        // plain, obviously right, slow
)

var kindNames = [...]string{"unspecified", "flagos", "vendor", "reference"}

// Kinds returns the kinds in the order of their constants.
func Kinds() []Kind { return []Kind{KindFlagos, KindVendor, KindReference} }

// String returns the name that policies use for the kind.
func (k Kind) String() string {
	if int(k) >= len(kindNames) {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return kindNames[k]
}

// ParseKind returns the kind with this name, in any case.
func ParseKind(s string) (Kind, error) {
	name := strings.ToLower(strings.TrimSpace(s))
	for _, k := range Kinds() {
		if name == k.String() {
			return k, nil
		}
	}
	return KindUnspecified, fmt.Errorf("opregistry: unknown kind %q, want flagos, vendor or reference", s)
}

// MarshalText returns the name of the kind.
func (k Kind) MarshalText() ([]byte, error) {
	if k == KindUnspecified || int(k) >= len(kindNames) {
		return nil, fmt.Errorf("opregistry: %v has no text form", k)
	}
	return []byte(k.String()), nil
}

// UnmarshalText accepts what ParseKind accepts.
func (k *Kind) UnmarshalText(text []byte) error {
	parsed, err := ParseKind(string(text))
	if err != nil {
		return err
	}
	*k = parsed
	return nil
}
