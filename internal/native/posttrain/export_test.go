package posttrain

// TrainRows returns the number of rows to train on.
func (s *Set) TrainRows() int { return len(s.train) }
