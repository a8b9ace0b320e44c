// Package kubernetes keeps cells as Lease objects of a Kubernetes cluster, so that each pod of
// a fleet has a node number of its own, without a volume, a StatefulSet or a database.
//
// You need one name: [github.com/tickflake/tickflake/stores.Open] with a k8s:// URL; import this package for it.
// examples/kubernetes/store.yaml has the rights and a Deployment; outside a pod, a kubeconfig is enough:
//
//	tickflake generate --store k8s://default
//
// It brings 1 module of others into a program.
//
// # URLs
//
//	k8s://NAMESPACE[/PREFIX][?kubeconfig=FILE&context=NAME&namespace=NAME]
//
// NAMESPACE is one of Kubernetes; the option namespace separates fleets in it, as with every
// store. In a pod, the server and the credentials are those of its service account; elsewhere,
// those of a kubeconfig: the file of the option, else of KUBECONFIG, else ~/.kube/config. A user there logs in
// by a token, a certificate or a program (exec); the files are read anew while the process runs. A
// user with any other field is refused: "as", and a user name with a password, which Kubernetes no longer takes.
//
// # Format
//
// One object per cell of the kind Lease (coordination.k8s.io/v1), with the version and the value of
// the cell in the annotation tickflake.io/cell. Its name is PREFIX.NAMESPACE.KEY with dots for slashes; what Kubernetes'
// names do not take becomes z and one more character, z too. "kubectl get lease" shows who holds a node
// number; nothing reads that. A Read is one request, and a Swap two, or one for a new cell. A List reads
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
// A server that asks to wait (429 with Retry-After) is not asked before that time.
package kubernetes
