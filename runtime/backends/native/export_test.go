package native

// For tests.
var (
	BeginSave      = beginSave
	CopyFiles      = copyFiles
	NamesElsewhere = namesElsewhere
)

func (s *saveJob) IsReady() bool   { return s.isReady() }
func (s *saveJob) Judge(err error) { s.judge(err) }
func (s *saveJob) Wait() error     { return s.wait() }
func (s *saveJob) GiveUp() error   { return s.giveUp() }
