package elastic

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/primus-fl/primus/internal/durable"
)

// The variables that ranks read: those of torchrun, the reason why they were started again, and who
// prints errors.
const (
	EnvErrorFile   = "TORCHELASTIC_ERROR_FILE"    // where a rank may leave its error
	EnvRestarts    = "TORCHELASTIC_RESTART_COUNT" // how often the ranks were started again
	EnvMaxRestarts = "TORCHELASTIC_MAX_RESTARTS"
	EnvReason      = "PRIMUS_RESTART_REASON"
	EnvPrints      = "PRIMUS_RANK_ERRORS" // set when the program that started the rank prints its error
)

// RankError is what a rank says of its failure.
type RankError struct {
	Message string
	Follows bool // the rank failed because another one did
	Usage   bool // the command line or the experiment is wrong
	Hung    bool // the rank was ended because it hung
}

// errorFile is the format of torchrun.
type errorFile struct {
	Message struct {
		Message string            `json:"message"`
		Extra   map[string]string `json:"extraInfo"`
	} `json:"message"`
}

// The keys of extraInfo for the fields of RankError.
const (
	follows = "follows"
	usage   = "usage"
	hung    = "hung"
)

// WriteError leaves the error of a rank in a file, which must not exist; "" is no file.
func WriteError(file string, e RankError) error {
	if file == "" {
		return nil
	}
	var f errorFile
	f.Message.Message = e.Message
	f.Message.Extra = map[string]string{"timestamp": strconv.FormatInt(time.Now().Unix(), 10), "py_callstack": ""}
	for key, on := range map[string]bool{follows: e.Follows, usage: e.Usage, hung: e.Hung} {
		if on {
			f.Message.Extra[key] = "true"
		}
	}
	text, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("error file of torchrun: %w", err)
	}
	w, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("error file of torchrun: %w", err)
	}
	if _, err := w.Write(text); err != nil {
		_ = w.Close() // the first error says more
		return fmt.Errorf("error file of torchrun: %w", err)
	}
	return w.Close()
}

// maxErrorFile bounds what is read of what a rank has left.
const maxErrorFile = 16 << 20

// ReadError reads the error that a rank has left.
func ReadError(file string) (RankError, error) {
	text, err := durable.ReadRegular(file, maxErrorFile)
	if err != nil {
		return RankError{}, err
	}
	var f errorFile
	if err := json.Unmarshal(text, &f); err != nil {
		return RankError{}, fmt.Errorf("error file of a rank: %w", err)
	}
	said := f.Message.Extra
	return RankError{Message: f.Message.Message, Follows: said[follows] != "", Usage: said[usage] != "", Hung: said[hung] != ""}, nil
}
