package timeline

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/primus-fl/primus/internal/durable"
)

// file is a timeline in the trace event format.
type file struct {
	Unit   string  `json:"displayTimeUnit"`
	Events []event `json:"traceEvents"`
	Other  *other  `json:"otherData,omitempty"`
}

// other is what the format does not know.
type other struct {
	Began time.Time `json:"began"` // time 0 of the events
}

// event is a complete event of the format: times are in microseconds.
type event struct {
	Name     string         `json:"name"`
	Category string         `json:"cat,omitempty"`
	Phase    string         `json:"ph"`
	Start    float64        `json:"ts"`
	Duration float64        `json:"dur,omitempty"`
	Process  int            `json:"pid"`
	Thread   int            `json:"tid"`
	Args     map[string]any `json:"args,omitempty"`
}

// phaseMeta is the phase of events that name processes and threads.
const phaseMeta = "M"

func (f file) write(w io.Writer) error {
	buffered := bufio.NewWriter(w)
	if err := json.NewEncoder(buffered).Encode(f); err != nil {
		return err
	}
	return buffered.Flush()
}

// Part is a file that WriteJSON has written.
type Part struct {
	Name string // for errors
	io.Reader
}

// Join writes the timelines of the ranks of a job as one, with a process for each rank. It trusts
// the clocks of their machines. An error names the part that it is about.
func Join(w io.Writer, parts ...Part) error {
	var files []file
	owners := map[int]string{} // of processes
	var first time.Time
	for _, p := range parts {
		var f file
		if err := json.NewDecoder(p).Decode(&f); err != nil {
			return fmt.Errorf("timeline %s: %w", p.Name, err)
		}
		if f.Other == nil || f.Other.Began.IsZero() || len(f.Events) == 0 {
			return fmt.Errorf("timeline %s: given a file without otherData.began and events, want one that primus wrote", p.Name)
		}
		process := f.Events[0].Process
		if owner, taken := owners[process]; taken {
			return fmt.Errorf("timeline %s: it is of rank %d, and so is %s; want files of different ranks", p.Name, process-1, owner)
		}
		owners[process] = p.Name
		if first.IsZero() || f.Other.Began.Before(first) {
			first = f.Other.Began
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		return errors.New("timeline: given no file to join")
	}
	all := file{Unit: "ms", Other: &other{Began: first}}
	for _, f := range files {
		after := float64(f.Other.Began.Sub(first).Nanoseconds()) / 1e3
		for _, e := range f.Events {
			if e.Phase != phaseMeta {
				e.Start += after
			}
			all.Events = append(all.Events, e)
		}
	}
	return all.write(w)
}

// JoinFiles is Join for files. The file is written as a whole or not at all.
func JoinFiles(file string, parts []string) error {
	var opened []Part
	for _, name := range parts {
		f, err := durable.OpenRegular(name)
		if err != nil {
			return fmt.Errorf("timeline: %w", err)
		}
		defer f.Close()
		opened = append(opened, Part{name, bufio.NewReader(f)})
	}
	return durable.WriteFile(file, func(w io.Writer) error { return Join(w, opened...) })
}
