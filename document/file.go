package document

import (
	"errors"
	"fmt"
	"io"

	"github.com/primus-fl/primus/internal/durable"
)

// ReadFile returns the content of a regular file. Of one that is too large for [Parse] it returns
// as much as shows that. What is not a regular file, such as a pipe, is an [*Error] and is not
// opened, because that may block.
func ReadFile(file string) ([]byte, error) {
	f, err := durable.OpenRegular(file)
	if irregular, ok := errors.AsType[*durable.IrregularError](err); ok {
		return nil, &Error{Origin: Origin{File: file}, Problem: fmt.Sprintf("given %s, want a regular file", irregular.Kind())}
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxSize+1))
}
