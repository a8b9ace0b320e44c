// Package kubernetes keeps cells as Lease objects of a Kubernetes cluster, so that each pod of
// a fleet has a node number of its own, without a volume, a StatefulSet or a database.
//
// You need one name: [github.com/tickflake/tickflake/stores.Open] with a k8s:// URL; import this package for it.
// examples/kubernetes/store.yaml has the rights and a Deployment. Outside a pod, kubectl logs in:
//
//	kubectl proxy &
//	tickflake generate --store 'k8s://default?server=http://127.0.0.1:8001'
//
// It brings no module of others into a program.
//
// # URLs
//
//	k8s://NAMESPACE[?server=URL&cacert=FILE&token=FILE&namespace=NAME]
//
// NAMESPACE is one of Kubernetes; the option namespace separates fleets in it, as with every
// store. In a pod, the server, its certificate authority and the token are those of the service account. Elsewhere, server names
// https://HOST[:PORT], or http:// with a loopback address; cacert has the certificate authorities in PEM instead of the system's, and
// token the user's token. The files are read anew while the process runs.
//
// # Format
//
// One object per cell of the kind Lease (coordination.k8s.io/v1), with the version and the value of
// the cell in the annotation tickflake.io/cell. Its name is NAMESPACE.KEY, with the option namespace and dots for slashes; what Kubernetes'
// names do not take becomes z and one more character, z too. A Read is one request, and a Swap two, or one for a new cell. A List reads
// all Leases with the label tickflake.io/fleet of this fleet, 500 in a request (3,000 in 0.2 s): plan for 10,000 node numbers.
//
// # To lose nothing
//
// The API server writes to etcd, which loses no acknowledged write with its defaults. Restoring a
// backup of the cluster takes the fleet back to an older state: see stores/etcd. Deleting the
// objects, or the namespace, does so too. Velero and other tools that copy objects into a second cluster
// copy the fleet: give it another namespace there.
//
// # Rights
//
// A Role with get, list, create and update on leases in the API group coordination.k8s.io, and nothing else.
package kubernetes
