package document

// StringValue returns a string without origin. text is UTF-8.
func StringValue(text string) Value { return Value{data: text} }

// ListValue returns a list without origin. It keeps items, which must not be changed afterwards.
func ListValue(items []Value) Value { return Value{data: items} }

// MapValue returns a mapping without origin.
func MapValue(m *Map) Value { return Value{data: m} }

// Builder puts a [Map] together key by key. The zero Builder is empty.
type Builder struct {
	m *Map
}

// NewBuilder returns a builder that starts with the keys of m, which stays as it is.
func NewBuilder(m *Map) *Builder { return &Builder{m: m.clone(0)} }

// Set appends a key, or replaces the value of one that is there and leaves it at its place.
func (b *Builder) Set(key string, value Value) {
	if b.m == nil {
		b.m = newMap(0)
	}
	b.m.set(key, value)
}

// Map returns what was built. The builder is empty again.
func (b *Builder) Map() *Map {
	built := b.m
	b.m = nil
	if built == nil {
		return newMap(0)
	}
	return built
}
