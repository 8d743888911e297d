package opregistry

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/cpufeat"
	"github.com/primus-fl/primus/tensor"
)

// Support declares which calls an impl serves. Calls that it rules out go to the next impl, and
// explanations show why. The zero Support rules out nothing: then the impl itself declines.
//
// The operands of a call lie in one place: host memory, or one device. Operands in several places
// are served by no impl.
//
// The lead operand of a call is the one whose tag has the word lead, or else the first: the input
// of a norm, A of a product.
type Support struct {
	// Devices are the types of the devices whose memory the impl reads and writes; nil means host
	// memory, device.TypeCPU.
	Devices []device.Type

	// DTypes are the dtypes that the lead operand may have; nil allows any.
	DTypes []tensor.DType

	// MinRank and MaxRank bound the number of axes of the lead operand; 0 means no bound.
	MinRank, MaxRank int

	// MinElements and MaxElements bound the size of the lead operand; 0 means no bound.
	MinElements, MaxElements int

	// Features are CPU features that the impl needs, named as in github.com/klauspost/cpuid, in any
	// case: "avx2", "avx512f", "asimd".
	Features []string

	// Without names optional arguments that a call has to leave out: a tensor is nil, a list is empty,
	// a number is 0.
	Without []string

	// Call decides where the fields above are too coarse. It is a func(A) error, where A is the
	// op's argument struct; it returns why a call is not served, and allocates nothing when the
	// call is served.
	Call any
}

// PerCall reports whether the declaration rules out some calls and not others.
func (s *Support) PerCall() bool { return s.OfLead() || s.Without != nil || s.Call != nil }

// OfLead reports whether the declaration depends on the lead operand.
func (s *Support) OfLead() bool {
	return s.DTypes != nil || s.MinRank > 0 || s.MaxRank > 0 || s.MinElements > 0 || s.MaxElements > 0
}

// String describes the declaration; it is "" for the zero Support.
func (s *Support) String() string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	bounds := func(what string, low, high int) {
		switch {
		case low > 0 && high > 0:
			add("%d to %d %s", low, high, what)
		case low > 0:
			add("at least %d %s", low, what)
		case high > 0:
			add("at most %d %s", high, what)
		}
	}
	if s.Devices != nil {
		add("operands on %s", s.devices())
	}
	if s.DTypes != nil {
		add("dtype %s", s.dtypes())
	}
	bounds("axes", s.MinRank, s.MaxRank)
	bounds("elements", s.MinElements, s.MaxElements)
	if len(s.Features) > 0 {
		add("CPU feature %s", strings.Join(s.Features, ", "))
	}
	if len(s.Without) > 0 {
		add("calls without %s", strings.Join(s.Without, ", "))
	}
	if s.Call != nil {
		add("decides at the call")
	}
	return strings.Join(parts, "; ")
}

// On returns nil if operands in memory of this type of device are served, else an error that wraps
// ErrUnsupported and says why not.
func (s *Support) On(t device.Type) error {
	if s.Devices == nil && t == device.TypeCPU || slices.Contains(s.Devices, t) {
		return nil
	}
	if s.Devices == nil {
		return Unsupported("operands on %v: declared for %v", t, device.TypeCPU)
	}
	return Unsupported("operands on %v: declared for %s", t, s.devices())
}

func (s *Support) devices() string {
	names := make([]string, len(s.Devices))
	for i, t := range s.Devices {
		names[i] = t.String()
	}
	return strings.Join(names, ", ")
}

func (s *Support) dtypes() string {
	names := make([]string, len(s.DTypes))
	for i, d := range s.DTypes {
		names[i] = d.String()
	}
	return strings.Join(names, ", ")
}

// DTypeMask returns the dtypes of the lead operand as bits, or 0 when any is served. only reports
// whether nothing else is declared that depends on the call.
func (s *Support) DTypeMask() (mask uint32, only bool) {
	for _, d := range s.DTypes {
		mask |= 1 << d
	}
	rest := *s
	rest.DTypes = nil
	return mask, !rest.PerCall()
}

// Machine returns why no call is served on this machine, or nil.
func (s *Support) Machine() error {
	missing, err := cpufeat.Missing(s.Features...)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return Unsupported("needs CPU feature %s, which this machine lacks", strings.Join(missing, ", "))
	}
	return nil
}

// Lead returns nil if calls with a lead operand of this dtype and shape are served, else an error
// that wraps ErrUnsupported and says why not. A nil shape stands for any shape.
func (s *Support) Lead(d tensor.DType, shape tensor.Shape) error {
	if s.DTypes != nil && !slices.Contains(s.DTypes, d) {
		return Unsupported("dtype %v: declared for %s", d, s.dtypes())
	}
	if shape == nil {
		return nil
	}
	switch rank, n := len(shape), shape.NumElements(); {
	case s.MinRank > 0 && rank < s.MinRank:
		return Unsupported("%d axes: declared for at least %d", rank, s.MinRank)
	case s.MaxRank > 0 && rank > s.MaxRank:
		return Unsupported("%d axes: declared for at most %d", rank, s.MaxRank)
	case s.MinElements > 0 && n < s.MinElements:
		return Unsupported("%d elements: declared for at least %d", n, s.MinElements)
	case s.MaxElements > 0 && n > s.MaxElements:
		return Unsupported("%d elements: declared for at most %d", n, s.MaxElements)
	}
	return nil
}

// Serves returns nil if an impl with this Support serves the call, else an error that wraps
// ErrUnsupported and says why not.
func Serves[A any](s *Support, op *Op[A], a A) error {
	if s.OfLead() {
		if lead := op.Lead(&a); lead != nil {
			if err := s.Lead(lead.DType(), lead.Shape()); err != nil {
				return err
			}
		}
	}
	for _, name := range s.Without {
		if op.plan().gives(unsafe.Pointer(&a), name) {
			return Unsupported("argument %s is given: declared for calls without it", name)
		}
	}
	if s.Call == nil {
		return nil
	}
	return asDecline(s.Call.(func(A) error)(a))
}

// asDecline wraps an error in ErrUnsupported unless it already is one.
func asDecline(err error) error {
	if err != nil && !errors.Is(err, ErrUnsupported) {
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return err
}

// check returns what is wrong with a declaration.
func (s *Support) check(op Handle) error {
	if s.Devices != nil && (len(s.Devices) == 0 || slices.Contains(s.Devices, device.TypeUnspecified)) {
		return fmt.Errorf("given devices %v in its support, want types of devices, or nil for host memory", s.Devices)
	}
	if i := slices.IndexFunc(s.DTypes, func(d tensor.DType) bool { return d.Size() == 0 }); i >= 0 {
		return fmt.Errorf("given dtype %v in its support, want dtypes of tensors", s.DTypes[i])
	}
	if _, err := cpufeat.Missing(s.Features...); err != nil {
		return fmt.Errorf("support: %w", err)
	}
	for _, name := range s.Without {
		switch params := op.Params(); {
		case !slices.ContainsFunc(params, func(p Param) bool { return p.Name == name }):
			return fmt.Errorf("given %q in Support.Without, want the name of an argument", name)
		case !slices.ContainsFunc(params, func(p Param) bool { return p.Name == name && p.Optional }):
			return fmt.Errorf("given %q in Support.Without, want an argument that may be left out", name)
		}
	}
	if s.Call == nil {
		return nil
	}
	return op.describe().takes("Support.Call", s.Call)
}
