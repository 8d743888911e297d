package opregistry

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/primus-fl/primus/tensor"
)

// Impl is one implementation of an op.
type Impl struct {
	// Op is the handle of the op, such as norm.RMSNormFwd.
	Op Handle

	// ID names the impl within its op: "default.flagos", "vendor.acme".
	ID string

	// Kind is the impl's kind.
	Kind Kind

	// Vendor is the owner of the library or chip that the impl needs; required for KindVendor. It
	// is compared in lower case and after aliases are resolved.
	Vendor string

	// Priority ranks the impl among those that match one token of a policy; higher first. Usual
	// values: flagos 150, vendor 100, reference 50.
	Priority int

	// Run is a Func[A], where A is the op's argument struct. It may return an error that wraps
	// ErrUnsupported only before it has written to an operand.
	Run any

	// Support declares which calls the impl serves.
	Support Support

	// Determinism declares when equal operands give equal bits.
	Determinism Determinism

	// FlushesSubnormals are the dtypes of the lead operand for which the impl takes numbers below the
	// least normal one of f32, or of the dtype if that is larger, as 0: operands, products, sums and
	// results. With all other dtypes it keeps them, as package ops requires.
	FlushesSubnormals []tensor.DType

	// Measured ranks the impl among those with the same priority.
	Measured Measurement

	// Available returns nil when the impl can run on this machine, else why not. It is called when
	// a dispatch table is built, never in a call. Nil means always available. An error that wraps
	// ErrNotNeeded says that this process has no use for the impl.
	Available func() error
}

// Source is a named set of impls that is registered as a whole.
type Source struct {
	// Name says where the impls come from, such as "openblas".
	Name string

	// Version of the source, for listings. If it is empty, it is that of the library.
	Version string

	// LibraryVersion returns the version of the shared library that the impls call, "" if it cannot
	// be loaded. It loads the library, as Available of the impls does. Nil if the impls call none.
	LibraryVersion func() string

	// Aliases maps other names of vendors to the names that the impls use.
	Aliases map[string]string

	// Ops declares ops for which the source may have no impl.
	Ops []Handle

	// Impls of the source.
	Impls []Impl
}

// CurrentVersion returns the version of the source, or that of its library.
func (s *Source) CurrentVersion() string {
	if s.Version == "" && s.LibraryVersion != nil {
		return s.LibraryVersion()
	}
	return s.Version
}

var implID = regexp.MustCompile(`^[A-Za-z0-9_]+([.:-][A-Za-z0-9_]+)*$`)

var vendorName = regexp.MustCompile(`^[a-z0-9_]+([.-][a-z0-9_]+)*$`)

// NormalVendor returns a vendor name as registries and policies compare it:
// trimmed and in lower case. Aliases are resolved by the Snapshot.
func NormalVendor(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// check returns what is wrong with the impl on its own.
func (i *Impl) check() error {
	if i.Op == nil {
		return fmt.Errorf("opregistry: impl %q: given no Op, want the handle of an op", i.ID)
	}
	fail := func(format string, args ...any) error {
		return fmt.Errorf("opregistry: impl %q of op %q: %s", i.ID, i.Op.Name(), fmt.Sprintf(format, args...))
	}
	switch {
	case !implID.MatchString(i.ID):
		return fail("given id %q, want words of letters, digits and _ joined by dots, such as vendor.acme", i.ID)
	case i.Kind < KindFlagos || i.Kind > KindReference:
		return fail("given kind %v, want flagos, vendor or reference", i.Kind)
	case i.Kind == KindVendor && NormalVendor(i.Vendor) == "":
		return fail("given kind vendor without a vendor, want the vendor's name")
	case i.Vendor != "" && !vendorName.MatchString(NormalVendor(i.Vendor)):
		return fail("given vendor %q, want words of letters, digits and _", i.Vendor)
	}
	if err := CheckRun(i.Op, i.Run); err != nil {
		return fail("%v", err)
	}
	if err := i.Support.check(i.Op); err != nil {
		return fail("%v", err)
	}
	if err := i.Measured.check(); err != nil {
		return fail("%v", err)
	}
	if i.Determinism > DeterminismEverywhere {
		return fail("given %v, want a level of Determinism", i.Determinism)
	}
	return nil
}

// CheckRun returns an error unless run is an Impl.Run of the op.
func CheckRun(op Handle, run any) error {
	return op.describe().takes("Run", run, reflect.TypeFor[*Exec]())
}
