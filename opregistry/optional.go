package opregistry

import "encoding/json"

// OptionalBool is a bool that may be left out; its zero value is left out.
type OptionalBool struct{ value, set bool }

// Bool returns an OptionalBool with a value.
func Bool(v bool) OptionalBool { return OptionalBool{value: v, set: true} }

// Get returns the value and whether it was given.
func (b OptionalBool) Get() (v, given bool) { return b.value, b.set }

// Or returns the value, or def when it was left out.
func (b OptionalBool) Or(def bool) bool {
	if b.set {
		return b.value
	}
	return def
}

// MarshalJSON writes null for one that was left out.
func (b OptionalBool) MarshalJSON() ([]byte, error) { return optionalJSON(b.value, b.set) }

// UnmarshalJSON reads what MarshalJSON writes.
func (b *OptionalBool) UnmarshalJSON(text []byte) (err error) {
	b.value, b.set, err = parseOptional[bool](text)
	return err
}

// OptionalFloat is a float that may be left out; its zero value is left out.
type OptionalFloat struct {
	value float32
	set   bool
}

// Float returns an OptionalFloat with a value.
func Float(v float32) OptionalFloat { return OptionalFloat{value: v, set: true} }

// Or returns the value, or def when it was left out.
func (f OptionalFloat) Or(def float32) float32 {
	if f.set {
		return f.value
	}
	return def
}

// Get returns the value and whether it was given.
func (f OptionalFloat) Get() (v float32, given bool) { return f.value, f.set }

// MarshalJSON writes null for one that was left out.
func (f OptionalFloat) MarshalJSON() ([]byte, error) { return optionalJSON(f.value, f.set) }

// UnmarshalJSON reads what MarshalJSON writes.
func (f *OptionalFloat) UnmarshalJSON(text []byte) (err error) {
	f.value, f.set, err = parseOptional[float32](text)
	return err
}

func optionalJSON[T any](v T, set bool) ([]byte, error) {
	if !set {
		return []byte("null"), nil
	}
	return json.Marshal(v)
}

func parseOptional[T any](text []byte) (v T, set bool, err error) {
	if string(text) == "null" {
		return v, false, nil
	}
	return v, true, json.Unmarshal(text, &v)
}
