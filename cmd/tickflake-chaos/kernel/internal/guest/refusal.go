package guest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/stores"
)

// refusal opens a directory that many hosts may share, which must be refused, and then with
// the user's consent.
func refusal(ctx context.Context, dir string) (r Result) {
	r.Subject = "directory store on NFS"
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	broken := func(format string, args ...any) { r.Broken = append(r.Broken, fmt.Sprintf(format, args...)) }
	switch s, err := stores.Open(ctx, "file:"+dir); {
	case err == nil:
		broken("stores.Open accepts it")
		_ = s.Close()
	case !errors.Is(err, stores.ErrForgets) || stores.KindOf(err) != stores.Refused:
		broken("stores.Open fails with an error of another kind: %v", err)
	default:
		r.Note = "refused: " + err.Error()
	}
	gen, err := generator.Open(ctx, "file:"+dir+"?forgetful=allow")
	if err != nil {
		broken("forgetful=allow does not accept it: %v", err)
		return r
	}
	for ; r.Verdict.IDs < 1000 && err == nil; r.Verdict.IDs++ {
		_, err = gen.NextContext(ctx)
	}
	if err := errors.Join(err, gen.Close()); err != nil {
		broken("with forgetful=allow, after %d IDs: %v", r.Verdict.IDs, err)
	}
	return r
}
