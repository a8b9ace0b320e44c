package kernel

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tickflake/tickflake/chaos_test/kernel/internal/guest"
)

func init() {
	hostFaults[guest.NFS] = func(ctx context.Context, b *bench, f guest.Fault) (out outcome, err error) {
		s, err := b.boot(ctx, f.Name, b.config(f))
		if err != nil {
			return out, err
		}
		defer s.close()
		ran, err := s.run(ctx, guest.Request{Run: f.Name, Seed: b.o.Seed}, f.Limit)
		if err != nil {
			return out, err
		}
		var r guest.Refusal
		if len(ran.acks) != 1 {
			return out, fmt.Errorf("the guest has told %d findings, want one", len(ran.acks))
		}
		if err := json.Unmarshal(ran.acks[0], &r); err != nil {
			return out, fmt.Errorf("a message of the guest is damaged: %w: %.200q", err, ran.acks[0])
		}
		row := Row{Fault: f.Name, Subject: "directory store on NFS", Group: Ours, Broken: r.Broken, Verdict: Verdict{IDs: r.IDs}}
		if r.Refused != "" {
			row.Note = "refused: " + r.Refused
		}
		return outcome{rows: []Row{row}, kernel: ran.kernel}, nil
	}
}
