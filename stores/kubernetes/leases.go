package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
)

// annotation is the name of the annotation with the text of a cell.
const annotation = "tickflake.io/cell"

// Store is a [stores.Store] on Lease objects, opened by a URL. It is safe for use by several goroutines at once.
type Store struct{ engine.Skeleton[string] }

var _ stores.Store = (*Store)(nil)

// leases keeps texts as objects of the kind Lease, for the skeleton of package engine. The
// revision of a text is its resourceVersion.
type leases struct {
	client    rest.Interface
	namespace string // of Kubernetes
	prefix    string // of the objects' names

	// busy is when the server wants to be asked again, in nanoseconds since 1970; it never goes
	// back. Each request waits for it.
	busy atomic.Int64
}

// Get reads one object. A request without a resourceVersion is answered by a majority of etcd.
func (l *leases) Get(ctx context.Context, key string, _ bool) (engine.Text[string], error) {
	lease := new(coordination.Lease)
	err := l.send(ctx, l.client.Get().Name(l.prefix+nameOf(key)), lease)
	if err != nil {
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return engine.Text[string]{Latest: true}, err
	}
	return engine.Text[string]{Bytes: []byte(lease.Annotations[annotation]), Found: true, Revision: lease.ResourceVersion, Latest: true}, nil
}

// Put writes one object, if it still has the revision, or makes it, if that is "".
func (l *leases) Put(ctx context.Context, key, revision string, text []byte) error {
	lease := &coordination.Lease{ObjectMeta: meta.ObjectMeta{
		Name: l.prefix + nameOf(key), Namespace: l.namespace, ResourceVersion: revision, Annotations: map[string]string{annotation: string(text)},
	}, Spec: show(text)}
	request := l.client.Post()
	if revision != "" {
		request = l.client.Put().Name(lease.Name)
	}
	err := l.send(ctx, request.Body(lease), lease)
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || revision != "" && apierrors.IsNotFound(err) {
		return stores.ErrConflict
	}
	return err
}

// page is how many objects one request of Scan asks for.
const page = 500

// Scan reads all objects of the namespace, since Kubernetes cannot list a range, and gives
// those with keys in [from, to) to found, in the order of their keys, while it returns true.
func (l *leases) Scan(ctx context.Context, from, to string, _ int, found func(key string, text []byte) bool) error {
	texts := make(map[string]string)
	for next, more := "", true; more; more = next != "" {
		list := new(coordination.LeaseList)
		options := &meta.ListOptions{Limit: page, Continue: next}
		if err := l.send(ctx, l.client.Get().VersionedParams(options, scheme.ParameterCodec), list); err != nil {
			return err
		}
		for i := range list.Items {
			name, ok := strings.CutPrefix(list.Items[i].Name, l.prefix)
			if key, known := keyOf(name); ok && known && from <= key && key < to {
				texts[key] = list.Items[i].Annotations[annotation]
			}
		}
		next = list.Continue
	}
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		if !found(key, []byte(texts[key])) {
			break
		}
	}
	return nil
}

// send sends a request once, and decodes the answer. Before that it waits for as long as the server
// has asked for, but not past the end of the context.
func (l *leases) send(ctx context.Context, request *rest.Request, into runtime.Object) error {
	if err := l.pause(ctx); err != nil {
		return err
	}
	_, err := engine.Wait(ctx, func() (struct{}, error) { // fetching credentials knows no context
		return struct{}{}, request.Namespace(l.namespace).Resource("leases").MaxRetries(0).Do(ctx).Into(into)
	})
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		again := time.Now().Add(time.Duration(seconds) * time.Second).UnixNano()
		for was := l.busy.Load(); was < again && !l.busy.CompareAndSwap(was, again); was = l.busy.Load() {
		}
	}
	return err
}

// pause waits until the server wants to be asked again.
func (l *leases) pause(ctx context.Context) error {
	left := time.Until(time.Unix(0, l.busy.Load()))
	if left <= 0 {
		return nil
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: not before %v: %w", errBusy, left.Round(time.Millisecond), ctx.Err())
	}
}

// show is what kubectl get lease shows of a cell: the holder of a node number. Nothing
// reads it.
func show(text []byte) (spec coordination.LeaseSpec) {
	_, value, _ := strings.Cut(string(text), " ")
	var node struct{ Holder, Owner string }
	if json.Unmarshal([]byte(value), &node) != nil || node.Holder == "" {
		return spec
	}
	now := meta.NowMicro()
	spec.RenewTime = &now
	spec.HolderIdentity = &node.Holder
	if node.Owner != "" {
		spec.HolderIdentity = &node.Owner
	}
	return spec
}
