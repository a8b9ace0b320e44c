package lease_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores/storetest"
)

// TestMove moves a fleet of which one number is held, one is pinned, and one was released.
func TestMove(t *testing.T) {
	r := newRig(t)
	r.run("export new = never-claimed; claim x bits:2 pin:0; claim p bits:2 pin:3; claim f bits:2")
	require.ErrorIs(t, second(lease.Export(t.Context(), r.cells, "new")), lease.ErrHeld)
	r.refuses("Export", second(lease.Export(t.Context(), r.cells, "", lease.EvenIfRunning())))
	r.run(`close x; export new; floors new 3; export elsewhere; floors new 3`)
	floors := r.floors

	// The old processes use their grants up, and no more.
	r.run(`15s; poll f; granted f 0s 30s; err f = moved; close f; poll p; granted p 0s 30s; err p = lost; close p
		reserve 0 0 8760h bits:2 = moved; import = moved`)
	for n := range 4 {
		r.run(fmt.Sprintf("claim o bits:2 pin:%d = moved; release %[1]d = held", n))
	}

	// The new ones begin at the floors, and not before the clock is there.
	text := must(json.Marshal(floors))
	r.floors = lease.Floors{}
	require.NoError(t, json.Unmarshal(text, &r.floors))
	r.run("in new; import; step -1h")
	for _, f := range floors.Nodes {
		r.run(fmt.Sprintf("claim n bits:2 pin:%d = held; 2h; claim n bits:2 pin:%[1]d; step -2h", f.Node))
		require.GreaterOrEqual(t, r.members["n"].Held().Floor, f.Limit)
	}
	r.run("calls; import; calls 1") // it is complete

	forged := func(nodes ...lease.Floor) func(*lease.Floors) {
		return func(f *lease.Floors) { f.Nodes = nodes; *f = lease.Sealed(*f) }
	}
	for want, change := range map[string]func(*lease.Floors){
		"format 0":         func(f *lease.Floors) { f.Format = 0 },
		"newer version":    func(f *lease.Floors) { f.Format = 2 },
		`export ""`:        func(f *lease.Floors) { f.Export = "" },
		"spec":             func(f *lease.Floors) { f.Layout = "x" },
		"SHA-256":          func(f *lease.Floors) { f.Nodes = nil },
		"each number once": forged(floors.Nodes[0], floors.Nodes[0]),
		"number 4 with":    forged(lease.Floor{Node: 4, Limit: 1}),
		"with limit 0":     forged(lease.Floor{}),
		"limit 115292150":  forged(lease.Floor{Limit: 1 << 60}),
	} {
		bad := floors
		change(&bad)
		err := lease.Import(t.Context(), storetest.NewMemory(), bad)
		r.refuses("Import", err)
		require.ErrorContains(t, err, want)
	}
	r.run("cut; import = refused 'was used before'") // of other floors
	r.floors = floors
	r.run("export third")
	limits := map[int64]uint64{}
	for _, f := range r.floors.Nodes {
		limits[f.Node] = f.Limit
	}
	for _, f := range floors.Nodes {
		require.GreaterOrEqual(t, limits[f.Node], f.Limit)
	}
	r.floors, floors = floors, r.floors
	r.run("import = moved") // an old document changes nothing
	r.floors = floors
	r.run("in third; import")
}

// TestExportsAtOnce exports while another export is faster, or ends early, and moves cells that others wrote.
func TestExportsAtOnce(t *testing.T) {
	layout := smallLayout(0)
	last := "'" + string(cell.Node{Holder: "h", Limit: 1 << layout.TimeBits, Write: "w", Layout: layout.String()}.Encode()) + "'"
	scripts(t, map[string]string{
		"another is faster": `claim k bits:2; client fast; fate fast swap:node away
			client slow; on slow swap:layout { export new fast = store 'export again to continue' }; export another slow; floors new 1`,
		"the last write fails": "claim k bits:2; client c; fate c swap:node away 9+3; export new c = store '3 of 4 node numbers'; export another; floors new 1",
		"a process extends before the write": `claim k bits:0; client slow; on slow swap:node { 15s; poll k }
			export new slow; granted k 0s 45s; in new; import; holding 0 reserved 45s`,
		"a process extends before a read": `claim k bits:0; client slow; on slow read:node { 15s; poll k }
			export new slow; granted k 0s 30s; in new; import; holding 0 reserved 30s`,
		"others write a cell":            "claim k bits:0; client slow; on slow swap:node 99 { write 0 }; export another slow = conflict '8 times in a row'",
		"a listed write is undone":       "claim k bits:0; snapshot held; export new; client c; on c read:node { back held }; export new c; holding 0 reserved",
		"a floor meets a damaged number": "claim k bits:0; export new; in new; write 0 rubbish; import = damaged 'node number 0 cannot be read'",
		"a floor meets a granted number": "claim k bits:0; export new; in new; write 0 " + last + "; import = refused 'was granted'",
		"a number is held until the end": "claim k bits:0; write 0 " + last + "; export new; in new; import; holding 0 reserved " + layout.End().Sub(noon).String(),
		"the outcome is unknown":         "claim k bits:2; client c; fate c swap:layout lost; export new c = store 'perhaps'; export another; floors new 1",
	})
}

// TestImportIsOvertaken has others write, or the store go back, in the middle of an import.
func TestImportIsOvertaken(t *testing.T) {
	rows := map[string]string{}
	for name, others := range map[string]string{ // come before the second read of a cell
		"lost its floor":        "on i read:node { back begun }; import i = went-back 'node number 0'",
		"lost it after a look":  "on i read:layout 1+2 { back begun }; import i = conflict; import i; holding 0 reserved 30s",
		"emptied":               "on i read:layout 1+1 { back empty }; import i = went-back",
		"emptied and used":      "on i read:layout 1+1 { back empty; claim x bits:0 }; import i = went-back",
		"emptied, used before":  "on i read:node { back empty; claim x bits:1 }; import i = went-back",
		"other floors":          "on i read:layout 1+1 { back empty; cut; import }; import i = went-back",
		"complete and used":     "on i read:node { import; claim x bits:0 }; import i",
		"complete after a look": "on i read:layout 1+1 { import; claim x bits:0 }; import i",
		"away":                  "fate i swap:node away; fate i read:layout away 1+1; import i = store 'swap node/'", // one timeout is enough
		"complete and exported": "on i read:layout 1+1 { import; export newer }; import i = moved",
	} {
		rows[name] = `claim o bits:0; export new; 1h; in new; client i; snapshot empty
			on i read:node { snapshot begun; claim x bits:0 = moved; export newer = moved }; ` + others // as it has begun
	}
	scripts(t, rows)
}
