package measure

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tickflake/tickflake/bench/report"
	"github.com/tickflake/tickflake/integration/servers"
)

// On measures on servers, and stops them. It notes those that ran, and why others did not.
func (run *Run) On(ctx context.Context, wanted []servers.Wanted, measured func(started []*servers.Server, s *report.Section)) (s report.Section) {
	started, stop := servers.All(ctx, wanted...)
	defer func() { _ = stop() }() // on a panic
	run.Until = run.Until.Add(-Pick(run, 500*time.Millisecond, 2*time.Second))
	s.Skipped = "No server runs here."
	for _, server := range started {
		note := fmt.Sprintf("%s %s.", server.Kind, server.Version)
		if server.Err != nil {
			note = fmt.Sprintf("%s does not run here, so what needs it is not measured: %s.", server.Kind, servers.Reason(server.Err))
		} else {
			s.Skipped = ""
		}
		if server.Kind != servers.Directory && !slices.Contains(s.Notes, note) {
			s.Notes = append(s.Notes, note)
		}
	}
	if s.Skipped != "" {
		return s
	}
	measured(started, &s)
	if err := stop(); err != nil {
		s.Note("Stopping the servers failed: %v.", err)
	}
	return s
}
