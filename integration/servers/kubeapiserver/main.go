// Command kubeapiserver is the API server of Kubernetes, for the tests of stores/kubernetes. It is
// no module of go.work, since its build takes ten minutes of processor time:
//
//	GOWORK=off go -C integration/servers/kubeapiserver build -o "${XDG_CACHE_HOME:-$HOME/.cache}/tickflake/" .
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() { os.Exit(cli.Run(app.NewAPIServerCommand())) }
