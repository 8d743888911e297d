package library

import (
	"errors"
	"fmt"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/vendors/abi"
)

// The results of functions of libprimus besides those of package abi.
const (
	CodeInvalid  = 16 // a wrong argument; nothing was computed
	CodeNotFound = 17 // an op, a manager or a bound op that there is not
	CodeRefused  = 18 // a policy that cannot be put in force; the old one stays
	CodeForked   = 19 // the process is a child of the one that loaded the library
	CodeBug      = 20 // a fault of the library
)

// failure is an error with the code that C gets for it.
type failure struct {
	code int32
	error
}

// Unwrap returns the error.
func (f failure) Unwrap() error { return f.error }

func invalid(format string, args ...any) error {
	return failure{CodeInvalid, fmt.Errorf(format, args...)}
}

// Code returns the result of a function that ended with an error, abi.OK for nil.
func Code(err error) int32 {
	if err == nil {
		return abi.OK
	}
	if f, ok := errors.AsType[failure](err); ok {
		return f.code
	}
	if _, ok := errors.AsType[*opregistry.ArgError](err); ok {
		return CodeInvalid
	}
	if _, ok := errors.AsType[*opmanager.UnservedError](err); ok {
		return CodeRefused
	}
	switch {
	case errors.Is(err, opregistry.ErrNotFound):
		return CodeNotFound
	case errors.Is(err, opregistry.ErrUnsupported):
		return abi.Unsupported
	}
	return abi.Failed
}
