package corpus

import (
	"context"
	"fmt"
	"strings"
)

// OnBad says what becomes of a record, a line of JSON or a row of a Parquet file, that holds no
// document.
type OnBad string

// What may become of a bad record.
const (
	BadError OnBad = "error" // the reading ends with it
	BadSkip  OnBad = "skip"  // it is left out and counted
)

// Values returns the choices.
func (OnBad) Values() []string { return []string{string(BadError), string(BadSkip)} }

// namedBad is how many bad records are named by place.
const namedBad = 5

// Bad counts the records that were left out.
type Bad struct {
	Records int
	First   []string // the first ones, with places and faults; none for those left out by an earlier run
	Empty   int      // records whose document has no text, which always are
}

// String describes what was left out, "" for nothing.
func (b Bad) String() string {
	switch {
	case b.Records == 0 && b.Empty > 0:
		return fmt.Sprintf("documents without text: %d, which are left out", b.Empty)
	case b.Records == 0:
		return ""
	case b.Empty > 0:
		empty := Bad{Empty: b.Empty}
		b.Empty = 0
		return b.String() + "; " + empty.String()
	case len(b.First) == 0:
		return fmt.Sprintf("bad records left out (on_bad_record=skip): %d, when the token cache was written; verify_data=true names the first ones", b.Records)
	}
	return fmt.Sprintf("bad records left out (on_bad_record=skip): %d: %s", b.Records, strings.Join(b.First, "; "))
}

// Skip counts the fault of a record, which names its place, and returns nil. It returns the fault
// if what is asked for is not BadSkip, or if ctx has ended, which may be what it says.
func (o OnBad) Skip(ctx context.Context, b *Bad, fault error) error {
	switch {
	case fault == nil || ctx.Err() != nil:
		return fault
	case o != BadSkip:
		return fmt.Errorf("%w; on_bad_record=skip leaves out such records", fault)
	}
	b.Records++
	if len(b.First) < namedBad {
		b.First = append(b.First, fault.Error())
	}
	return nil
}
