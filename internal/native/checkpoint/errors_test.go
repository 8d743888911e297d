package checkpoint

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"github.com/primus-fl/primus/internal/durable"
)

// What the system could not do now is told apart from what is wrong with a file.
func TestUnusable(t *testing.T) {
	t.Parallel()
	for _, err := range []error{syscall.EIO, syscall.ESTALE, syscall.ELOOP, syscall.EACCES, syscall.ETIMEDOUT, syscall.EMFILE, syscall.ENOMEM, errors.New("other")} {
		got := unusable("dir", "a", "", &fs.PathError{Op: "read", Path: "dir/a", Err: err})
		if unreadable, ok := errors.AsType[*UnreadableError](got); !ok || !errors.Is(unreadable, err) || unreadable.Path != "dir" {
			t.Errorf("%v became %v", err, got)
		}
	}
	for _, err := range []error{
		&fs.PathError{Op: "open", Path: "dir/a", Err: syscall.ENOENT},
		&durable.IrregularError{Path: "dir/a", Mode: fs.ModeNamedPipe}, &durable.LengthError{Path: "dir/a", Limit: 3},
	} {
		if damaged, ok := errors.AsType[*CorruptError](unusable("dir", "a", "", err)); !ok || damaged.File != "a" {
			t.Errorf("%v is no damage", err)
		}
	}
}
