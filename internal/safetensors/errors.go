package safetensors

import (
	"encoding/binary"
	"fmt"
)

// FormatError says where a file breaks the format.
type FormatError struct {
	File   string
	Tensor string // "" when the problem is not one tensor's
	Got    string
	Want   string
}

// Error names the file, the tensor, what was found and what was expected.
func (e *FormatError) Error() string {
	where := e.File
	if e.Tensor != "" {
		where += fmt.Sprintf(": tensor %q", e.Tensor)
	}
	return fmt.Sprintf("safetensors: %s: given %s, want %s", where, e.Got, e.Want)
}

// MismatchError says how a tensor of a valid file differs from the one that the caller wants.
type MismatchError struct {
	File   string
	Tensor string
	Got    string // what the file has, "" when the tensor is missing
	Want   string
}

// Error names the file, the tensor, what the file has and what was asked for.
func (e *MismatchError) Error() string {
	if e.Got == "" {
		return fmt.Sprintf("safetensors: %s: no tensor %q, want %s", e.File, e.Tensor, e.Want)
	}
	return fmt.Sprintf("safetensors: %s: tensor %q has %s, want %s", e.File, e.Tensor, e.Got, e.Want)
}

func checkByteOrder() error {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		return fmt.Errorf("safetensors: this machine is big-endian, the format is little-endian: use a little-endian machine")
	}
	return nil
}
