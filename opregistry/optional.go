package opregistry

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
