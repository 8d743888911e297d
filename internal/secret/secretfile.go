package secret

import (
	"crypto/tls"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/primus-fl/primus/internal/durable"
)

// KeyPair returns a certificate and its key, both in PEM. Other users may be able to read the
// certificate, but not the key.
func KeyPair(certFile, keyFile string) (tls.Certificate, error) {
	cert, err := durable.ReadRegular(certFile, maxSize)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := Read(keyFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}

// maxSize bounds what is read.
const maxSize = 1 << 20

// ExposedError reports a file that other users have access to.
type ExposedError struct {
	File string
	Mode fs.FileMode
}

// Error says how the file is protected.
func (e *ExposedError) Error() string {
	return fmt.Sprintf("%s has the permissions %04o, so that other users can read or change it, want %04o or less: chmod 600 %[1]s",
		e.File, e.Mode.Perm(), 0o600)
}

// Read returns the content of a file. If other users have access to it, the error is an
// *ExposedError.
func Read(file string) ([]byte, error) {
	f, err := os.Open(file) // a pipe of the shell keeps a secret off the disk
	if err != nil {
		return nil, err
	}
	defer f.Close() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if exposed(info) {
		return nil, &ExposedError{file, info.Mode()}
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err == nil && len(text) > maxSize {
		return nil, fmt.Errorf("%s has more than %d bytes, which is too long for a token or key", file, maxSize)
	}
	return text, err
}
