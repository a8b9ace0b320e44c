package sequence

import "context"

// Restored tells the Sequence that the memory of this process was restored or copied: by a virtual machine's
// snapshot, AWS Lambda SnapStart or CRIU. Call it before the first number after the restore. The original, or
// another copy, may issue the same reserved numbers. So the Sequence gives them up at once, forgets its writes
// in flight, and reads the sequence again; the next number is one that no process was granted before. Calls
// that wait get theirs by a new write.
//
// It returns as soon as ctx ends, and without a deadline after four timeouts of [WithTimeout] at most. After an
// error of the store, nothing is reserved, and the next call reads the sequence again.
func (s *Sequence) Restored(ctx context.Context) error {
	if err := s.forget(); err != nil {
		return err
	}
	return s.poll(ctx)
}

// forget gives up what is reserved, as the program tells that this memory is a copy.
func (s *Sequence) forget() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return ErrClosed
	}
	s.distrust(true)
	return nil
}

// distrust gives up what is reserved, if the program tells, or else the device, that this memory is a copy. It
// believes the device also after the window was sealed, so that no copy gives the numbers of its original back. The caller holds mu.
func (s *Sequence) distrust(told bool) bool {
	mark := s.config.page.Marker.Load()
	if mark != s.mark {
		s.stats.Copies++
	} else if !told {
		return false
	}
	s.restored, s.mark = true, mark
	s.window.SetMark(mark)
	s.window.Revoke()
	return true
}
