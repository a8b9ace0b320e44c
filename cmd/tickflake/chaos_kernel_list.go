package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/tickflake/tickflake/chaos_test/kernel"
)

// kernelFaultJSON and kernelSubjectJSON are the JSON of 'tickflake chaos list --kernel'.
type kernelFaultJSON struct {
	Fault string      `json:"fault"`
	Kind  kernel.Kind `json:"kind"`
	What  string      `json:"what"`
}

type kernelSubjectJSON struct {
	Subject string       `json:"subject"`
	Group   kernel.Group `json:"group"`
	How     string       `json:"how"`
}

// writeKernelList lists the faults of a real kernel and, below, the generators.
func writeKernelList(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range kernel.Faults() {
		fmt.Fprintf(t, "%s\t%s\t%s\n", f.Name, f.Kind, f.About)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, s := range kernel.Subjects() {
		fmt.Fprintf(t, "%s\t%s\t%s\n", s.Name, s.Group, s.How)
	}
	return t.Flush()
}

// writeKernelJSON writes the same as one object per line.
func writeKernelJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	for _, f := range kernel.Faults() {
		if err := encoder.Encode(kernelFaultJSON{f.Name, f.Kind, f.About}); err != nil {
			return err
		}
	}
	for _, s := range kernel.Subjects() {
		if err := encoder.Encode(kernelSubjectJSON{s.Name, s.Group, s.How}); err != nil {
			return err
		}
	}
	return nil
}
