package guest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/directory"
)

// refusal opens a directory that many hosts may share, which must be refused, and then with
// the user's consent.
func refusal(ctx context.Context, dir string) (r Result) {
	r.Subject = "directory store on NFS"
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	broken := func(format string, args ...any) { r.Broken = append(r.Broken, fmt.Sprintf(format, args...)) }
	want := func(name string, err, kind error, words ...string) {
		if err == nil {
			broken("%s accepts it", name)
			return
		}
		if !errors.Is(err, kind) || stores.KindOf(err) != stores.Refused {
			broken("%s fails with an error of another kind than %q: %v", name, kind, err)
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				broken("the error of %s does not say %q: %v", name, w, err)
			}
		}
	}
	const advice = "name a directory on a disk of this host"
	d, err := directory.Open(ctx, dir)
	if err == nil {
		_ = d.Close()
	}
	want("directory.Open", err, directory.ErrUnfit, dir, "NFS", advice)
	for _, url := range []string{dir, "file:" + dir} {
		s, err := stores.Open(ctx, url)
		if err == nil {
			_ = s.Close()
		} else {
			r.Note = "refused: " + err.Error()
		}
		want("stores.Open", err, stores.ErrForgets, dir, "NFS", advice, "forgetful=allow")
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
