package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
)

// annotation is the name of the annotation with the text of a cell.
const annotation = "tickflake.io/cell"

// Store is a [stores.Store] on Lease objects, opened by a URL. It is safe for use by several goroutines at once.
type Store struct{ engine.Skeleton[revision] }

// revision is that of an object. Without its uid, a server makes a Lease anew that was deleted since, whatever
// the version that a PUT asks for.
type revision struct {
	uid     types.UID
	version string
}

// leases keeps texts as objects of the kind Lease, for the skeleton of package engine.
type leases struct {
	client    rest.Interface
	namespace string // of Kubernetes
	prefix    string // of the objects' names
}

// Get reads one object. A request without a resourceVersion is answered by a majority of etcd.
func (l *leases) Get(ctx context.Context, key string, _ bool) (engine.Text[revision], error) {
	lease := new(coordination.Lease)
	err := l.send(ctx, l.client.Get().Name(l.prefix+nameOf(key)), lease)
	if err != nil {
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return engine.Text[revision]{Latest: true}, err
	}
	return engine.Text[revision]{Bytes: []byte(lease.Annotations[annotation]), Found: true, Revision: revision{lease.UID, lease.ResourceVersion}, Latest: true}, nil
}

// Put writes one object, if it still has the revision, or makes it, if there is none.
func (l *leases) Put(ctx context.Context, key string, at revision, text []byte) error {
	lease := &coordination.Lease{ObjectMeta: meta.ObjectMeta{
		Name: l.prefix + nameOf(key), Namespace: l.namespace, UID: at.uid, ResourceVersion: at.version,
		Annotations: map[string]string{annotation: string(text)},
	}, Spec: show(text)}
	request := l.client.Post()
	if at != (revision{}) {
		request = l.client.Put().Name(lease.Name)
	}
	err := l.send(ctx, request.Body(lease), lease)
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || at != (revision{}) && apierrors.IsNotFound(err) {
		return stores.ErrConflict
	}
	return err
}

// Scan reads all objects of the namespace, since Kubernetes cannot list a range.
func (l *leases) Scan(ctx context.Context, _, _ string, _ int, found func(key string, text []byte)) (more bool, err error) {
	for next, again := "", true; again; again = next != "" {
		list := new(coordination.LeaseList)
		options := &meta.ListOptions{Limit: 500, Continue: next}
		if err := l.send(ctx, l.client.Get().VersionedParams(options, runtime.NewParameterCodec(scheme)), list); err != nil {
			return false, err
		}
		for i := range list.Items {
			name, ours := strings.CutPrefix(list.Items[i].Name, l.prefix)
			if key, ok := keyOf(name); ours && ok {
				found(key, []byte(list.Items[i].Annotations[annotation]))
			}
		}
		next = list.Continue
	}
	return false, nil
}

// send sends a request once, and decodes the answer. The driver would print errors that it returns.
func (l *leases) send(ctx context.Context, request *rest.Request, into runtime.Object) error {
	ctx = klog.NewContext(ctx, klog.Logger{})
	return request.Namespace(l.namespace).Resource("leases").MaxRetries(0).Do(ctx).Into(into)
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

var (
	errRight   = stores.Refused.New("the server refuses a right: bind the Role of the package doc to the service account or user")
	errLogin   = stores.Refused.New("the server refuses the credentials: renew them, or check the service account")
	errInvalid = stores.Refused.New("the server refuses the object, or has no such kind: it needs coordination.k8s.io/v1")
	errHome    = stores.Refused.New("there is no such namespace of Kubernetes: make it, or fix the URL")
	errSlow    = stores.Passing.New("the server cannot answer now")
)

// refused gives the server's answer its kind. Its text names the right that is missing.
func refused(err error) error {
	for _, answer := range []struct {
		is   func(error) bool
		kind error
	}{
		{apierrors.IsForbidden, errRight},
		{apierrors.IsUnauthorized, errLogin},
		{apierrors.IsNotFound, errHome}, // of a write; a Read knows it as no cell
		{apierrors.IsTooManyRequests, errSlow},
		{apierrors.IsResourceExpired, errSlow}, // a List that has taken too long
		{apierrors.IsServerTimeout, errSlow},
		{apierrors.IsTimeout, errSlow},
		{apierrors.IsServiceUnavailable, errSlow},
		{apierrors.IsInternalError, errSlow},
		{apierrors.IsInvalid, errInvalid},
		{apierrors.IsBadRequest, errInvalid},
	} {
		if err != nil && answer.is(err) {
			return fmt.Errorf("%w: %w", answer.kind, err)
		}
	}
	return err
}
