package backend

// PatchResult is the result of a patch in a run.
type PatchResult struct {
	Phase  string `json:"phase"`
	ID     string `json:"id"`
	Result string `json:"result"` // applied, failed or skipped
	Reason string `json:"reason,omitempty"`
	By     string `json:"by"` // ByPrimus or ByPython
}

// The programs that apply patches.
const (
	ByPrimus = "primus"
	ByPython = "python"
)

// The results of patches.
const (
	PatchApplied = "applied"
	PatchFailed  = "failed"
	PatchSkipped = "skipped"
)

// Version is the version of a program or package that a framework runs with.
type Version struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}
